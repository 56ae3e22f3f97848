// A stand-in for basic_heap whose blocks are blocks of the process's malloc, one by one: Valgrind
// and sanitizers then see each block, its end, and what is never freed. <heapwright/heap.hpp> takes
// it where HEAPWRIGHT_DEFAULT_MALLOC is defined.
//
// A table of blocks is the source of statistics, limits and reports. It has the call stack of each
// request, so every operation is slow.
//
// One lock guards the tables of all such heaps. fork takes it first, so that a child finds no table
// half changed. Nothing that a caller brings, a function or a file descriptor, is used under it.
//
// A heap in memory of the caller is no case for malloc: its blocks must lie there. It is a
// basic_heap.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/call_stack.hpp>
#include <heapwright/core/layout.hpp>
#include <heapwright/core/text.hpp>
#include <heapwright/heap/heap_statistics.hpp>
#include <heapwright/platform/concept.hpp>
#include <heapwright/source/process_malloc.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

/// The tables of all heaps whose blocks are malloc's: their lock.
template <platform OS>
struct malloc_heap_tables {
  static inline constinit lock<OS> guard;

  /// Each heap says it when it is made.
  static void make_known_to_fork() noexcept {
    static bool is_known = false;
    const holding held(guard);
    if (!is_known) OS::at_fork([] { guard.acquire(); }, [] { guard.release(); }, [] { guard.reset_after_fork(); });
    is_known = true;
  }
};

/// As the basic_heap `Real`, where nothing else is said. Thread-safe whatever the recipe says. Of
/// the recipe only the limit counts, in the bytes that were asked for.
///
/// What is in use when it is destroyed stays with malloc, so that Valgrind and LeakSanitizer report
/// it. With HEAPWRIGHT_LEAKS=1 in the environment it is reported on stderr too, as by write_blocks.
template <class Real>
class malloc_heap {
 public:
  explicit malloc_heap(const char* name = "", std::uint64_t limit = Real::default_limit) noexcept
      : name_(name), limit_(limit) {
    tables::make_known_to_fork();
  }

  malloc_heap(void* memory, std::size_t bytes, const char* name = "") noexcept : name_(name), limit_(bytes) {
    in_memory_.emplace(memory, bytes, name);
  }

  template <std::same_as<char> Char>
  malloc_heap(Char* memory_or_name, std::uint64_t bytes_or_limit, const char* name = "") = delete;

  malloc_heap(const malloc_heap&) = delete;
  malloc_heap& operator=(const malloc_heap&) = delete;

  ~malloc_heap() {
    const char* const leaks = environment_variable("HEAPWRIGHT_LEAKS");
    if (!blocks_.empty() && leaks != nullptr && std::strcmp(leaks, "1") == 0) write_blocks(2);
  }

  [[nodiscard]] bool attached() const noexcept { return !in_memory_ || in_memory_->attached(); }

  [[nodiscard]] void* allocate(std::size_t size) noexcept { return allocate(layout{size}); }

  [[nodiscard]] void* allocate(layout l) noexcept {
    if (in_memory_) return in_memory_->allocate(l);
    const holding held(tables::guard);
    if (l.size > PTRDIFF_MAX || l.alignment > PTRDIFF_MAX / 2 || l.size > limit_ || in_use_ > limit_ - l.size)
      return nullptr;
    const bool is_ordinary = l.alignment <= default_alignment;
    void* const p = is_ordinary ? std::malloc(l.size) : detail::malloc_aligned(l.alignment, l.size);
    return p == nullptr || note(p, {l.size, call_stack::here(), is_ordinary}) ? p : nullptr;
  }

  [[nodiscard]] void* allocate_zeroed(std::size_t size) noexcept {
    if (in_memory_) return in_memory_->allocate_zeroed(size);
    void* const p = allocate(size);
    return p == nullptr ? nullptr : std::memset(p, 0, size);
  }

  void deallocate(void* p) noexcept {
    if (in_memory_) return in_memory_->deallocate(p);
    const holding held(tables::guard);
    if (const auto found = blocks_.find(p); found != blocks_.end()) {
      const request asked = found->second;
      in_use_ -= asked.size;
      blocks_.erase(found);
      free(p, asked);
    }
  }

  void deallocate(void* p, layout) noexcept { deallocate(p); }

  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept {
    if (in_memory_) return in_memory_->reallocate(p, size);
    if (p != nullptr && size == 0) {
      deallocate(p);
      return nullptr;
    }
    void* const fresh = allocate(size);
    if (p == nullptr || fresh == nullptr) return fresh;
    std::memcpy(fresh, p, std::min(size, usable_size(p)));
    deallocate(p);
    return fresh;
  }

  /// Writes what is in use to a file descriptor: for each call stack that asked for some, a line
  /// with the program's own frame, and the stack. Most bytes first.
  [[gnu::cold]] void write_blocks(int fd) noexcept {
    if (in_memory_) return in_memory_->write_blocks(fd);
    struct sum {
      std::uint64_t bytes = 0, blocks = 0;
    };
    try {
      std::map<call_stack, sum> by_stack;
      {
        const holding held(tables::guard);
        for (const auto& [p, asked] : blocks_) {
          by_stack[asked.by].bytes += asked.size;
          ++by_stack[asked.by].blocks;
        }
      }
      std::multimap<std::uint64_t, std::pair<const call_stack*, sum>, std::greater<>> largest_first;
      for (const auto& [stack, total] : by_stack) largest_first.emplace(total.bytes, std::pair(&stack, total));
      for (const auto& [bytes, place] : largest_first) write_stack(fd, *place.first, place.second.blocks, bytes);
    } catch (const std::bad_alloc&) {
      text<200>().add("heapwright: ").add(shown_name(name_)).add(": no memory to look at the blocks\n").write_to(fd);
    }
  }

  /// What was asked for: more is nobody's.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept {
    if (in_memory_) return in_memory_->usable_size(p);
    const holding held(tables::guard);
    const auto found = blocks_.find(const_cast<void*>(p));
    return found == blocks_.end() ? 0 : found->second.size;
  }

  [[nodiscard]] bool owns(const void* p) const noexcept {
    if (in_memory_) return in_memory_->owns(p);
    const holding held(tables::guard);
    return blocks_.contains(const_cast<void*>(p));
  }

  std::size_t trim() noexcept { return in_memory_ ? in_memory_->trim() : 0; }

  /// False without memory of the caller: malloc's blocks share their pages with others.
  [[nodiscard]] bool lock_pages() noexcept { return in_memory_ && in_memory_->lock_pages(); }
  [[nodiscard]] bool unlock_pages() noexcept { return !in_memory_ || in_memory_->unlock_pages(); }

  void set_limit(std::uint64_t bytes) noexcept {
    if (in_memory_) return in_memory_->set_limit(bytes);
    const holding held(tables::guard);
    limit_ = bytes;
  }

  [[nodiscard]] const char* name() const noexcept { return name_; }

  [[nodiscard]] heap_statistics statistics() noexcept {
    if (in_memory_) return in_memory_->statistics();
    const holding held(tables::guard);
    return {.name = name_,
            .mapped = in_use_,
            .in_use = in_use_,
            .requested = in_use_,
            .mapped_peak = peak_,
            .limit = limit_};
  }

  /// Without memory of the caller no thread keeps anything.
  template <class F>
  void for_each_cache(F f) noexcept {
    if (in_memory_) in_memory_->for_each_cache(f);
  }

  template <class F>
  [[nodiscard]] bool for_each_block(F f) noexcept {
    if (in_memory_) return in_memory_->for_each_block(f);
    std::vector<std::pair<const void*, std::size_t>> seen;
    try {
      const holding held(tables::guard);
      seen.reserve(blocks_.size());
      for (const auto& [p, asked] : blocks_) seen.emplace_back(p, asked.size);
    } catch (const std::bad_alloc&) {
      return false;
    }
    for (const auto& [p, size] : seen) f(p, size);
    return true;
  }

 private:
  using tables = malloc_heap_tables<typename Real::platform_type>;

  struct request {
    std::size_t size;
    call_stack by;
    bool is_ordinary;  ///< malloc's own alignment
  };

  static void free(void* p, const request& asked) noexcept {
    asked.is_ordinary ? std::free(p) : detail::free_aligned(p);
  }

  /// Null: it is not set, or the process has more rights than the user who has set it.
  [[nodiscard]] static const char* environment_variable(const char* name) noexcept {
#ifdef _WIN32
    return std::getenv(name);
#elif defined(__APPLE__)
    return ::issetugid() == 0 ? std::getenv(name) : nullptr;
#else
    return ::secure_getenv(name);
#endif
  }

  void write_stack(int fd, const call_stack& stack, std::uint64_t blocks, std::uint64_t bytes) const noexcept {
    text<1200> line;
    line.add("heapwright: ").add(shown_name(name_)).add(": ").add(blocks).add(blocks == 1 ? " block, " : " blocks, ");
    line.add_bytes(bytes).add(" in use, asked for at ");
    const bool named = stack.for_each_own([&](unsigned number, const named_frame& frame) {
      if (number == 1) {
        if (frame.line.empty())
          line.add(frame.function);
        else
          line.add(frame.line).add(" (").add(frame.function).add(")");
        line.add("\n").write_to(fd);
      }
      call_stack::write_frame(fd, number, frame);
    });
    if (named) return;
    line.add(stack.raw().c_str()).add("\n").write_to(fd);
    stack.write_raw(fd);
  }

  bool note(void* p, const request& asked) noexcept {
    try {
      blocks_.emplace(p, asked);
    } catch (const std::bad_alloc&) {
      free(p, asked);
      return false;
    }
    in_use_ += asked.size;
    peak_ = std::max(peak_, in_use_);
    return true;
  }

  const char* name_;
  std::uint64_t limit_;
  std::map<void*, request> blocks_;
  std::uint64_t in_use_ = 0;
  std::uint64_t peak_ = 0;
  std::optional<Real> in_memory_;
};

}  // namespace heapwright
