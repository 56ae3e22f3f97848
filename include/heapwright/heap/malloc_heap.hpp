// A stand-in for basic_heap with the same interface, whose blocks are the process's malloc's, one by one: for looking at a program with Valgrind or a
// sanitizer, which see every block then, its end and what was never freed. <heapwright/heap.hpp> takes it where HEAPWRIGHT_DEFAULT_MALLOC is defined.
//
// Slow: each operation takes a lock and keeps a table of blocks. The table is what statistics, limits and the end of the heap come from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include <dlfcn.h>

#include <heapwright/core/layout.hpp>
#include <heapwright/core/text.hpp>
#include <heapwright/heap/heap_statistics.hpp>
#include <heapwright/heap/recipe.hpp>

namespace heapwright {

/// As basic_heap, where nothing else is said. Thread-safe whatever the recipe says, of which only the limit counts, in the bytes that were asked for. What is in use
/// when it is destroyed is freed then, so that leaks of a heap that ends are no leaks of the process; with HEAPWRIGHT_LEAKS=1 in the environment it is reported on stderr
/// before, as write_blocks does. For a heap with static storage that is at the end of the program.
template <recipe R>
class malloc_heap {
 public:
  explicit malloc_heap(const char* name = "", std::uint64_t limit = R.pages.limit) noexcept
      : name_(name), limit_(limit) {}
  malloc_heap(void*, std::size_t bytes, const char* name = "") noexcept : malloc_heap(name, bytes) {}
  malloc_heap(const malloc_heap&) = delete;
  malloc_heap& operator=(const malloc_heap&) = delete;
  ~malloc_heap() {
    const char* const leaks = ::secure_getenv("HEAPWRIGHT_LEAKS");
    if (!blocks_.empty() && leaks != nullptr && std::strcmp(leaks, "1") == 0) write_blocks(2);
    for (const auto& [p, asked] : blocks_) std::free(p);
  }

  [[nodiscard, gnu::noinline]] void* allocate(std::size_t size) noexcept {
    return allocate({size, default_alignment}, __builtin_return_address(0));
  }

  [[nodiscard, gnu::noinline]] void* allocate(layout l) noexcept { return allocate(l, __builtin_return_address(0)); }

  [[nodiscard, gnu::noinline]] void* allocate_zeroed(std::size_t size) noexcept {
    void* const p = allocate({size, default_alignment}, __builtin_return_address(0));
    return p == nullptr ? nullptr : std::memset(p, 0, size);
  }

  void deallocate(void* p) noexcept {
    const std::scoped_lock held(lock_);
    if (const auto found = blocks_.find(p); found != blocks_.end()) {
      in_use_ -= found->second.size;
      blocks_.erase(found);
      std::free(p);
    }
  }

  void deallocate(void* p, layout) noexcept { deallocate(p); }

  [[nodiscard, gnu::noinline]] void* reallocate(void* p, std::size_t size) noexcept {
    void* const fresh = allocate({size, default_alignment}, __builtin_return_address(0));
    if (p == nullptr || fresh == nullptr) return fresh;
    std::memcpy(fresh, p, std::min(size, usable_size(p)));
    deallocate(p);
    return fresh;
  }

  /// Writes what is in use to a file descriptor, a line for each place that asked for some, most bytes first; for `addr2line -e OBJECT OFFSET`.
  [[gnu::cold]] void write_blocks(int fd) noexcept {
    struct sum {
      std::uint64_t bytes = 0, blocks = 0;
    };
    try {
      const std::scoped_lock held(lock_);
      std::map<void*, sum> by_place;
      for (const auto& [p, asked] : blocks_) {
        by_place[asked.place].bytes += asked.size;
        ++by_place[asked.place].blocks;
      }
      std::multimap<std::uint64_t, std::pair<void*, sum>, std::greater<>> largest_first;
      for (const auto& place : by_place) largest_first.emplace(place.second.bytes, place);
      for (const auto& [bytes, place] : largest_first) write_place(fd, place.first, place.second.blocks, bytes);
    } catch (const std::bad_alloc&) {
      text<200>().add("heapwright: ").add(name_).add(": no memory to look at the blocks\n").write_to(fd);
    }
  }

  /// What was asked for: more is nobody's.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept {
    const std::scoped_lock held(lock_);
    const auto found = blocks_.find(const_cast<void*>(p));
    return found == blocks_.end() ? 0 : found->second.size;
  }

  [[nodiscard]] bool owns(const void* p) const noexcept {
    const std::scoped_lock held(lock_);
    return blocks_.contains(const_cast<void*>(p));
  }

  std::size_t trim() noexcept { return 0; }
  void set_limit(std::uint64_t bytes) noexcept {
    const std::scoped_lock held(lock_);
    limit_ = bytes;
  }
  [[nodiscard]] const char* name() const noexcept { return name_; }

  [[nodiscard]] heap_statistics statistics() noexcept {
    const std::scoped_lock held(lock_);
    return {.name = name_,
            .mapped = in_use_,
            .in_use = in_use_,
            .requested = in_use_,
            .mapped_peak = peak_,
            .limit = limit_};
  }

  /// No thread keeps anything.
  template <class F>
  void for_each_stock(F) noexcept {}

  template <class F>
  [[nodiscard]] bool for_each_block(F f) noexcept {
    const std::scoped_lock held(lock_);
    for (const auto& [p, asked] : blocks_) f(static_cast<const void*>(p), asked.size);
    return true;
  }

 private:
  struct request {
    std::size_t size;
    void* place;  ///< where the call returns to
  };

  void* allocate(layout l, void* place) noexcept {
    const std::scoped_lock held(lock_);
    if (l.size > PTRDIFF_MAX || l.alignment > PTRDIFF_MAX / 2 || l.size > limit_ || in_use_ > limit_ - l.size)
      return nullptr;
    const bool is_ordinary = l.alignment <= default_alignment;
    void* const p = is_ordinary ? std::malloc(l.size) : std::aligned_alloc(l.alignment, align_up(l.size, l.alignment));
    return p == nullptr || note(p, {l.size, place}) ? p : nullptr;
  }

  void write_place(int fd, const void* place, std::uint64_t blocks, std::uint64_t bytes) const noexcept {
    text<600> line;
    line.add("heapwright: ")
        .add(name_)
        .add(": ")
        .add(blocks)
        .add(" blocks, ")
        .add_bytes(bytes)
        .add(" in use, asked for at ");
    Dl_info object{};
    if (::dladdr(place, &object) == 0 || object.dli_fname == nullptr) {
      line.add(place);
    } else {
      line.add(object.dli_fname).add("+").add_hex(address_of(place) - address_of(object.dli_fbase));
      if (object.dli_sname != nullptr) line.add(" (").add(object.dli_sname).add(")");
    }
    line.add("\n").write_to(fd);
  }

  bool note(void* p, const request& asked) noexcept {
    try {
      blocks_.emplace(p, asked);
    } catch (const std::bad_alloc&) {
      std::free(p);
      return false;
    }
    in_use_ += asked.size;
    peak_ = std::max(peak_, in_use_);
    return true;
  }

  const char* name_;
  std::uint64_t limit_;
  mutable std::mutex lock_;
  std::map<void*, request> blocks_;
  std::uint64_t in_use_ = 0;
  std::uint64_t peak_ = 0;
};

}  // namespace heapwright
