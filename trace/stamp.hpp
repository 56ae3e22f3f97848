// The processor's counter of ticks, which all threads and processes read alike.
#pragma once

#include <cstdint>

namespace heapwright::trace {

#if defined(__x86_64__)
[[nodiscard]] inline std::uint64_t ticks_now() noexcept { return __builtin_ia32_rdtsc(); }
#elif defined(__aarch64__)
[[nodiscard]] inline std::uint64_t ticks_now() noexcept {
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#elif defined(__riscv)
[[nodiscard]] inline std::uint64_t ticks_now() noexcept {
  std::uint64_t ticks = 0;
  asm volatile("rdtime %0" : "=r"(ticks));
  return ticks;
}
#endif

}  // namespace heapwright::trace
