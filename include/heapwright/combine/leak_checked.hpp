// An allocator that knows in debug builds which blocks are alive and where each was asked for, and says so when it is destroyed. In release
// builds it is the allocator alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <source_location>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/text.hpp>

namespace heapwright {

/// A, with a list of its live blocks. Owns A. Not thread-safe.
template <class A>
class leak_checked {
  static_assert(
      allocator<A>,
      "leak_checked: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  template <class... Arguments>
  explicit leak_checked(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  leak_checked(const leak_checked&) = delete;
  leak_checked& operator=(const leak_checked&) = delete;
  ~leak_checked() { report(); }

  /// `where` is the place of the call, unless the caller names another.
  [[nodiscard]] void* allocate(layout l, std::source_location where = std::source_location::current()) noexcept {
    if constexpr (!checks_callers) return part_.allocate(l);
    const layout whole = widened(l);
    if (whole.size < l.size) return nullptr;
    auto* const raw = static_cast<std::byte*>(part_.allocate(whole));
    if (raw == nullptr) return nullptr;
    std::byte* const p = raw + before(l);
    head* const h = head_of(p);
    *h = {newest_, nullptr, l.size, where};
    if (newest_ != nullptr) newest_->newer = h;
    newest_ = h;
    return p;
  }

  void deallocate(void* p, layout l) noexcept {
    if constexpr (!checks_callers) return part_.deallocate(p, l);
    head* const h = head_of(p);
    (h->newer != nullptr ? h->newer->older : newest_) = h->older;
    if (h->older != nullptr) h->older->newer = h->newer;
    part_.deallocate(static_cast<std::byte*>(p) - before(l), widened(l));
  }

  [[nodiscard]] bool try_resize(void* p, layout from, layout to) noexcept
    requires can_resize<A>
  {
    if constexpr (!checks_callers) return part_.try_resize(p, from, to);
    const layout whole = widened(to);
    if (whole.size < to.size || before(to) != before(from)) return false;
    if (!part_.try_resize(static_cast<std::byte*>(p) - before(from), widened(from), whole)) return false;
    head_of(p)->size = to.size;
    return true;
  }

  /// What was alive is freed, and no leak.
  void reset() noexcept
    requires can_reset<A>
  {
    newest_ = nullptr;
    part_.reset();
  }

  std::size_t trim() noexcept
    requires can_trim<A>
  {
    return part_.trim();
  }

  /// Writes a line per live block to stderr, newest first, as many as are worth reading; returns how many there are. 0 in release builds.
  std::size_t report() const noexcept {
    std::size_t blocks = 0;
    std::size_t bytes = 0;
    for (const head* h = newest_; h != nullptr; h = h->older) {
      bytes += h->size;
      if (++blocks > lines) continue;
      text<400> line;
      line.add("heapwright: leak: ").add(std::uint64_t{h->size}).add(" bytes at ").add(static_cast<const void*>(h + 1));
      line.add(" from ").add(h->where.file_name()).add(":").add(std::uint64_t{h->where.line()});
      line.add(" (").add(h->where.function_name()).add(")\n").write_to(2);
    }
    if (blocks > lines) {
      text<100> line;
      line.add("heapwright: leak: ")
          .add(std::uint64_t{blocks})
          .add(" blocks in all, ")
          .add_bytes(bytes)
          .add("\n")
          .write_to(2);
    }
    return blocks;
  }

  [[nodiscard]] A& part() noexcept { return part_; }

 private:
  struct head {
    head* older;
    head* newer;
    std::size_t size;
    std::source_location where;
  };

  static constexpr std::size_t lines = 20;

  static std::size_t before(layout l) noexcept { return align_up(sizeof(head), std::max(l.alignment, alignof(head))); }
  static layout widened(layout l) noexcept { return {before(l) + l.size, std::max(l.alignment, alignof(head))}; }
  static head* head_of(void* p) noexcept { return reinterpret_cast<head*>(address_of(p) - sizeof(head)); }

  A part_;
  head* newest_ = nullptr;
};

}  // namespace heapwright
