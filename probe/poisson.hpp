// When to sample (segment.hpp): without libm, which the observed program may not have.
#pragma once

#include <bit>
#include <cstdint>

namespace heapwright::probe {

/// The natural logarithm of a positive, normal number, to 1e-14.
[[nodiscard]] constexpr double natural_logarithm(double x) noexcept {
  constexpr double ln_2 = 0.6931471805599453;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  auto m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) | std::uint64_t{1023} << 52);  // 1 <= m < 2
  if (m > 1.4142135623730951) m /= 2, ++exponent;
  // ln m = 2 artanh((m - 1) / (m + 1)), and |(m - 1) / (m + 1)| < 0.172
  const double t = (m - 1) / (m + 1), square = t * t;
  double sum = 0, power = t;
  for (int n = 1; n <= 17; n += 2, power *= square) sum += power / n;
  return 2 * sum + exponent * ln_2;
}

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators,
/// scrambled"). `state` must not be 0.
[[nodiscard]] constexpr std::uint64_t next_random(std::uint64_t& state) noexcept {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1D;
}

/// Bytes until the next sample, where there is one in `interval` bytes on average. With an interval
/// of 1 all bytes are: 0.
[[nodiscard]] constexpr std::int64_t bytes_to_next_sample(std::uint64_t interval, std::uint64_t& state) noexcept {
  if (interval <= 1) return 0;
  const double uniform = (static_cast<double>(next_random(state) >> 11) + 0.5) / 9007199254740992.0;  // in (0, 1)
  return static_cast<std::int64_t>(-natural_logarithm(uniform) * static_cast<double>(interval));
}

}  // namespace heapwright::probe
