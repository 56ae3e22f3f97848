// A debugging aid: replaces the program's operator new and delete by ones that count what reaches
// them, and print each call if asked. Include it in exactly one source file of a program; then ask
// heapwright::counted_new().
//
// Counting is atomic, printing goes to stderr without allocating. The memory is malloc's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <heapwright/core/layout.hpp>
#include <heapwright/core/text.hpp>
#include <heapwright/source/process_malloc.hpp>

namespace heapwright {

/// What the program's operator new and delete have done so far. Any thread may read it.
struct new_counts {
  std::atomic<std::uint64_t> allocations{0};    ///< calls of operator new that returned memory
  std::atomic<std::uint64_t> deallocations{0};  ///< calls of operator delete, without those of null
  std::atomic<std::uint64_t> bytes{0};          ///< asked for by all allocations so far
  std::atomic<bool> prints{false};              ///< set it to see every call
};

/// The counters of this program. Set `prints` to see each call on stderr. Thread-safe.
inline new_counts& counted_new() noexcept {
  static constinit new_counts counts;
  return counts;
}

namespace detail {

inline void* allocate_for_new(std::size_t size, std::size_t alignment) noexcept {
  if (size == 0) size = 1;
  return alignment <= default_alignment ? std::malloc(size) : malloc_aligned(alignment, size);
}

inline void* count_new(std::size_t size, std::size_t alignment) {
  void* p = allocate_for_new(size, alignment);
  for (; p == nullptr; p = allocate_for_new(size, alignment)) {
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
  new_counts& counts = counted_new();
  counts.allocations.fetch_add(1, std::memory_order_relaxed);
  counts.bytes.fetch_add(size, std::memory_order_relaxed);
  if (counts.prints.load(std::memory_order_relaxed)) {
    text<100> line;
    line.add("new    ").add(p).add("  ").add(std::uint64_t{size}).add(" bytes\n").write_to(2);
  }
  return p;
}

inline void count_delete(void* p, std::size_t alignment) noexcept {
  if (p == nullptr) return;
  new_counts& counts = counted_new();
  counts.deallocations.fetch_add(1, std::memory_order_relaxed);
  if (counts.prints.load(std::memory_order_relaxed)) {
    text<100> line;
    line.add("delete ").add(p).add("\n").write_to(2);
  }
  alignment <= default_alignment ? std::free(p) : free_aligned(p);
}

}  // namespace detail
}  // namespace heapwright

// The array and nothrow forms of the standard library call these.
// NOLINTBEGIN(misc-definitions-in-headers): one file of a program includes this
void* operator new(std::size_t size) { return heapwright::detail::count_new(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return heapwright::detail::count_new(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { heapwright::detail::count_delete(p, 1); }
void operator delete(void* p, std::size_t) noexcept { heapwright::detail::count_delete(p, 1); }
void operator delete(void* p, std::align_val_t alignment) noexcept {
  heapwright::detail::count_delete(p, static_cast<std::size_t>(alignment));
}
void operator delete(void* p, std::size_t, std::align_val_t alignment) noexcept {
  heapwright::detail::count_delete(p, static_cast<std::size_t>(alignment));
}
// NOLINTEND(misc-definitions-in-headers)
