// How the segment's counters are added to: those of one thread, and those that several threads
// share. While there is only one thread, shared ones cost no more than its own.
#pragma once

#include <bit>
#include <cstdint>

#include "../segment/segment.hpp"
#include "newer_libc.hpp"

namespace heapwright::probe {

/// To a counter that one thread writes to. Of a relaxed load and store GCC makes three or four
/// instructions, where the processor has one that is no less whole: a tenth of what counting takes.
inline void add(segment::counter& c, std::uint64_t n) noexcept {
#if defined(__x86_64__)
  asm("addq %1, %0" : "+m"(c) : "er"(n) : "cc");
#else
  c.store(c.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
#endif
}

/// What it is then.
inline std::uint64_t add_shared(segment::counter& c, std::uint64_t n) noexcept {
  if (!is_single_threaded()) return c.fetch_add(n, std::memory_order_relaxed) + n;
  add(c, n);
  return c.load(std::memory_order_relaxed);
}

/// To the bits of a double, in a counter that one thread writes to.
inline void add_real(segment::counter& c, double x) noexcept {
  c.store(std::bit_cast<std::uint64_t>(std::bit_cast<double>(c.load(std::memory_order_relaxed)) + x),
          std::memory_order_relaxed);
}

inline void add_real_shared(segment::counter& c, double x) noexcept {
  if (is_single_threaded()) return add_real(c, x);
  std::uint64_t old = c.load(std::memory_order_relaxed);
  while (!c.compare_exchange_weak(old, std::bit_cast<std::uint64_t>(std::bit_cast<double>(old) + x),
                                  std::memory_order_relaxed)) {
  }
}

/// How counters are added to that only this thread writes to.
struct alone {
  static void add(segment::counter& c, std::uint64_t n) noexcept { probe::add(c, n); }
  static void add_real(segment::counter& c, double x) noexcept { probe::add_real(c, x); }
};

/// How counters are added to that others write to as well.
struct with_others {
  static void add(segment::counter& c, std::uint64_t n) noexcept { add_shared(c, n); }
  static void add_real(segment::counter& c, double x) noexcept { add_real_shared(c, x); }
};

/// Counts an allocated block in its size class, or several, of so many bytes together.
template <class Adding>
[[gnu::always_inline]] inline void count_allocation(segment::class_counters& c, std::uint64_t bytes,
                                                    std::uint64_t requested, std::uint64_t blocks = 1) noexcept {
  Adding::add(c.allocations, blocks);
  Adding::add(c.allocated_bytes, bytes);
  Adding::add(c.requested_bytes, requested);
}

/// Counts a freed block in its size class, or several, of so many bytes together.
template <class Adding>
[[gnu::always_inline]] inline void count_free(segment::class_counters& c, std::uint64_t bytes,
                                              std::uint64_t blocks = 1) noexcept {
  Adding::add(c.frees, blocks);
  Adding::add(c.freed_bytes, bytes);
}

inline std::uint64_t exchange_shared(segment::counter& c, std::uint64_t n) noexcept {
  if (!is_single_threaded()) return c.exchange(n, std::memory_order_relaxed);
  const std::uint64_t old = c.load(std::memory_order_relaxed);
  c.store(n, std::memory_order_relaxed);
  return old;
}

}  // namespace heapwright::probe
