// What several threads count together. While there is only one it costs no more than a thread's own
// counters.
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

inline std::uint64_t exchange_shared(segment::counter& c, std::uint64_t n) noexcept {
  if (!is_single_threaded()) return c.exchange(n, std::memory_order_relaxed);
  const std::uint64_t old = c.load(std::memory_order_relaxed);
  c.store(n, std::memory_order_relaxed);
  return old;
}

}  // namespace heapwright::probe
