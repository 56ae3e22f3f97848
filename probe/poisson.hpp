// The mathematics of sampling (segment.hpp): without libm, which the observed program may not have.
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

/// 1 - exp(-x) for x >= 0, to a relative 1e-14.
[[nodiscard]] constexpr double one_minus_exp_of_minus(double x) noexcept {
  if (x > 40) return 1;
  // Halved until the series is short, then doubled back: 1 - e^-2y = (1 - e^-y)(2 - (1 - e^-y)).
  int halvings = 0;
  for (; x > 0.25; x /= 2) ++halvings;
  double sum = 0, term = x;
  for (int n = 2; n <= 14; ++n) {
    sum += term;
    term *= -x / n;
  }
  for (; halvings > 0; --halvings) sum *= 2 - sum;
  return sum;
}

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled"). `state` must not be 0.
[[nodiscard]] constexpr std::uint64_t next_random(std::uint64_t& state) noexcept {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1D;
}

/// Bytes until the next sample, where there is one in `interval` bytes on average. With an interval of 1 all bytes are: 0.
[[nodiscard]] constexpr std::int64_t bytes_to_next_sample(std::uint64_t interval, std::uint64_t& state) noexcept {
  if (interval <= 1) return 0;
  const double uniform = (static_cast<double>(next_random(state) >> 11) + 0.5) / 9007199254740992.0;  // in (0, 1)
  return static_cast<std::int64_t>(-natural_logarithm(uniform) * static_cast<double>(interval));
}

/// What one sampled block of so many bytes stands for.
struct weight {
  std::uint64_t blocks;  ///< in 1/1024
  std::uint64_t bytes;
};

[[nodiscard]] constexpr weight weight_of(std::uint64_t bytes, std::uint64_t interval) noexcept {
  if (interval <= 1) return {1024, bytes};
  const double size = static_cast<double>(bytes);
  const double p = one_minus_exp_of_minus(size / static_cast<double>(interval));
  if (p <= 0) return {0, 0};  // an empty block, which is never sampled
  return {static_cast<std::uint64_t>(1024 / p + 0.5), static_cast<std::uint64_t>(size / p + 0.5)};
}

}  // namespace heapwright::probe
