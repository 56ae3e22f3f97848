// Time as the segment has it: nanoseconds.
#pragma once

#include <cstdint>

#include <time.h>

namespace heapwright::probe {

[[nodiscard]] inline std::uint64_t nanoseconds(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

[[nodiscard]] inline std::uint64_t monotonic_ns() noexcept { return nanoseconds(CLOCK_MONOTONIC); }
[[nodiscard]] inline std::uint64_t unix_ns() noexcept { return nanoseconds(CLOCK_REALTIME); }

}  // namespace heapwright::probe
