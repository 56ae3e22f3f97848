#include "root_ranges.hpp"

#include <algorithm>

namespace heapwright::tool {
namespace {

constexpr std::uint64_t word = sizeof(std::uint64_t);
constexpr std::uint64_t glibc_heap_bytes = 64 << 20;
/// Room for thread-local storage below a thread pointer, and for libc's description of the thread
/// above it.
constexpr std::uint64_t below_thread_pointer = 16384, above_thread_pointer = 8192;
constexpr std::uint64_t link_map_bytes = 2048;
constexpr std::uint64_t longest_stack = 64 << 20;

using ranges = std::vector<address_range>;

/// Sorted, without overlaps.
ranges joined(ranges all) {
  std::erase_if(all, [](const address_range& r) { return r.begin >= r.end; });
  std::ranges::sort(all, {}, &address_range::begin);
  ranges result;
  for (const address_range& r : all) {
    if (!result.empty() && r.begin <= result.back().end)
      result.back().end = std::max(result.back().end, r.end);
    else
      result.push_back(r);
  }
  return result;
}

/// What of `whole` is in none of the others, which are joined.
ranges without(address_range whole, const ranges& others) {
  ranges result;
  auto other = std::ranges::upper_bound(others, whole.begin, {}, &address_range::end);
  for (; other != others.end() && other->begin < whole.end; ++other) {
    if (other->begin > whole.begin) result.push_back({whole.begin, other->begin});
    whole.begin = std::max(whole.begin, other->end);
  }
  if (whole.begin < whole.end) result.push_back(whole);
  return result;
}

address_range common(address_range a, address_range b) {
  return {std::max(a.begin, b.begin), std::max(std::max(a.begin, b.begin), std::min(a.end, b.end))};
}

bool is_anonymous(const memory_mapping& m) { return m.path.empty() || m.path.starts_with('['); }

/// Shared memory of the process and its relatives; a shared file holds no addresses of one process.
bool is_shared_memory(const std::string& path) {
  return path.starts_with("/dev/zero") || path.starts_with("/memfd:") || path.starts_with("/SYSV");
}

class root_finder {
 public:
  explicit root_finder(const scanned_process& process) : p_(process), heap_(joined(process.heap)) {}

  root_set all() {
    root_set roots;
    for (std::size_t i = 0; i < p_.mappings.size(); ++i)
      if (may_hold_roots(i)) add_parts(i);
    for (const memory_mapping& m : p_.mappings) add_known_parts(m);
    roots.ranges = joined(std::move(found_));
    for (const thread_state& t : p_.threads)
      for (const auto* registers : {&t.kept, &t.scratch})
        roots.words.insert(roots.words.end(), registers->begin(), registers->end());
    return roots;
  }

 private:
  [[nodiscard]] bool is_observers(const memory_mapping& m) const {
    return std::ranges::find(p_.observers, m.path) != p_.observers.end();
  }

  [[nodiscard]] bool may_hold_roots(std::size_t i) const {
    const memory_mapping& m = p_.mappings[i];
    if (!m.is_readable || (m.is_shared && m.path == p_.segment)) return false;
    if (m.path == "[vvar]" || m.path == "[vdso]" || m.path == "[vsyscall]" || m.path.starts_with("[vvar")) return false;
    if (m.is_shared) return is_shared_memory(m.path);
    if (is_anonymous(m)) {
      // What a library's data needs beyond its file follows it.
      const bool is_observers_bss =
          i > 0 && p_.mappings[i - 1].at.end == m.at.begin && is_observers(p_.mappings[i - 1]);
      return !is_observers_bss || has_blocks(m.at);
    }
    return m.is_writable && !is_observers(m);
  }

  [[nodiscard]] std::span<const heap_block> blocks_in(address_range range) const {
    const auto first = std::ranges::lower_bound(p_.blocks, range.begin, {}, &heap_block::address);
    const auto last = std::ranges::lower_bound(p_.blocks, range.end, {}, &heap_block::address);
    return {first, last};
  }
  [[nodiscard]] bool has_blocks(address_range range) const { return !blocks_in(range).empty(); }

  void add_parts(std::size_t i) {
    const memory_mapping& m = p_.mappings[i];
    ranges left_out = dead_stacks(i);
    if (is_anonymous(m) && !p_.is_heap_root) {
      const auto blocks = blocks_in(m.at);
      if (m.path == "[heap]" && (p_.is_glibc || !blocks.empty())) return;
      if (p_.is_glibc && is_glibc_heap(i)) return;
      left_out.insert(left_out.end(), heap_.begin(), heap_.end());
      if (!p_.knows_heap && !blocks.empty()) add_heap_between(m.at, blocks, left_out);
    }
    for (const heap_block& b : blocks_in(m.at)) left_out.push_back({b.address, b.end()});
    const ranges rest = without(m.at, joined(std::move(left_out)));
    found_.insert(found_.end(), rest.begin(), rest.end());
  }

  static void add_heap_between(address_range mapping, std::span<const heap_block> blocks, ranges& left_out) {
    std::uint64_t end = mapping.begin;
    for (const heap_block& b : blocks) {
      if (b.address > end && b.address - end <= longest_gap) left_out.push_back({end, b.address});
      end = std::max(end, b.end());
    }
    if (mapping.end > end && mapping.end - end <= longest_gap) left_out.push_back({end, mapping.end});
  }

  /// One that holds no live block: the rest of its 64 MiB is reserved.
  [[nodiscard]] bool is_glibc_heap(std::size_t i) const {
    const address_range at = p_.mappings[i].at;
    if (at.begin % glibc_heap_bytes != 0 || i + 1 == p_.mappings.size()) return false;
    const memory_mapping& next = p_.mappings[i + 1];
    return !next.is_readable && next.at.begin == at.end && next.at.end == at.begin + glibc_heap_bytes;
  }

  /// A page that cannot be touched lies below a thread's stack.
  [[nodiscard]] bool has_guard_below(std::size_t i) const {
    if (p_.mappings[i].path == "[stack]") return true;
    return i > 0 && p_.mappings[i - 1].at.end == p_.mappings[i].at.begin && !p_.mappings[i - 1].is_readable &&
           !p_.mappings[i - 1].is_writable;
  }

  /// What of this mapping is below a stack pointer, or is the stack of a thread that has ended:
  /// libc keeps those, with records of its own at the end.
  [[nodiscard]] ranges dead_stacks(std::size_t i) const {
    const address_range at = p_.mappings[i].at;
    if (!has_guard_below(i)) return {};
    std::uint64_t live = at.end;
    for (const thread_state& t : p_.threads)
      if (at.contains(t.stack_pointer)) live = std::min(live, t.stack_pointer - red_zone_bytes());
    if (live < at.end) return {{at.begin, live}};
    for (const std::uint64_t old : p_.old_stacks)
      if (at.contains(old) && old - at.begin < longest_stack) return {{at.begin, old}};
    return {};
  }

  /// Stacks, thread-local storage and the loader's records, where they share a mapping with the
  /// malloc.
  void add_known_parts(const memory_mapping& m) {
    if (p_.knows_heap || !is_anonymous(m) || !m.is_readable || !has_blocks(m.at)) return;
    const auto add = [&](address_range part) {
      ranges blocks;
      for (const heap_block& b : blocks_in(m.at)) blocks.push_back({b.address, b.end()});
      const ranges rest = without(common(part, m.at), joined(std::move(blocks)));
      found_.insert(found_.end(), rest.begin(), rest.end());
    };
    for (const thread_state& t : p_.threads) {
      if (m.at.contains(t.stack_pointer) && t.thread_pointer > t.stack_pointer &&
          t.thread_pointer - t.stack_pointer < longest_stack)
        add({t.stack_pointer - red_zone_bytes(), t.thread_pointer});
      if (m.at.contains(t.thread_pointer))
        add({t.thread_pointer - below_thread_pointer, t.thread_pointer + above_thread_pointer});
    }
    for (const std::uint64_t object : p_.loader)
      if (m.at.contains(object)) add({object, object + link_map_bytes});
  }

  const scanned_process& p_;
  ranges heap_;
  ranges found_;
};

}  // namespace

glibc_place place_of(const heap_block& block, const glibc_header& header) {
  constexpr std::uint64_t is_mapped = 2, is_in_other_heap = 4, flags = 7;
  const std::uint64_t bytes = header.bytes_and_flags & ~flags;
  const std::uint64_t begin = block.address - 2 * word;
  if ((header.bytes_and_flags & is_mapped) != 0) {
    const address_range at{begin - header.previous_bytes, begin + bytes};
    const bool fits = bytes == block.bytes + 2 * word && header.previous_bytes <= begin && at.begin % page_bytes == 0 &&
                      at.end % page_bytes == 0;
    return fits ? glibc_place{at, true, true} : glibc_place{};
  }
  if (bytes != block.bytes + word) return {};
  if ((header.bytes_and_flags & is_in_other_heap) == 0) return {{}, false, true};
  const std::uint64_t heap = block.address / glibc_heap_bytes * glibc_heap_bytes;
  return {{heap, heap + glibc_heap_bytes}, false, true};
}

root_set roots_of(const scanned_process& process) { return root_finder(process).all(); }

}  // namespace heapwright::tool
