// What a sampled block stands for: by its size and the interval between samples at that time, which
// a sample has in 16 bits. Without libm, which the observed program may not have.
#pragma once

#include <bit>
#include <cstdint>

namespace heapwright::segment {

/// An interval in 16 bits: exact up to 2047, and for powers of two; otherwise less by up to a
/// thousandth. Only such intervals are sampled by.
class sampling_interval {
 public:
  constexpr explicit sampling_interval(std::uint64_t bytes) noexcept {
    if (bytes == 0) bytes = 1;
    const auto exponent = static_cast<unsigned>(std::bit_width(bytes)) - 1;
    code_ = static_cast<std::uint16_t>(exponent << digits | (bytes << (63 - exponent) << 1 >> (64 - digits)));
  }

  [[nodiscard]] static constexpr sampling_interval of_code(std::uint16_t code) noexcept {
    sampling_interval i(1);
    i.code_ = code;
    return i;
  }

  [[nodiscard]] constexpr std::uint16_t code() const noexcept { return code_; }
  [[nodiscard]] constexpr bool is_one() const noexcept { return code_ == 0; }

  [[nodiscard]] constexpr std::uint64_t bytes() const noexcept {
    const unsigned exponent = code_ >> digits;
    const std::uint64_t mantissa = std::uint64_t{1} << digits | (code_ & ((1U << digits) - 1));
    return exponent >= digits ? mantissa << (exponent - digits) : mantissa >> (digits - exponent);
  }

 private:
  static constexpr unsigned digits = 10;

  std::uint16_t code_;
};

static_assert(sampling_interval(1).code() == 0 && sampling_interval(2047).bytes() == 2047);
static_assert(sampling_interval(512 * 1024).bytes() == 512 * 1024 && sampling_interval(~0ULL).bytes() == 2047ULL << 53);

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

/// What one sampled block of so many bytes stands for.
struct weight {
  std::uint64_t blocks;  ///< in 1/1024
  std::uint64_t bytes;
  double variance;  ///< that it adds to the estimate of bytes, in bytes^2: (size / p)^2 (1 - p)
};

/// What one unseen sample of a site may stand for, in bytes, by what was seen: its blocks are about
/// as long as those. `block_bytes` 0: nothing was seen. 0: all blocks are seen.
[[nodiscard]] constexpr double unseen_weight(double block_bytes, std::uint64_t interval) noexcept {
  if (interval <= 1) return 0;
  const auto mean = static_cast<double>(interval);
  if (block_bytes <= mean / 1024) return mean;
  const double p = one_minus_exp_of_minus(block_bytes / mean);
  return block_bytes / p * (1 - p);
}

/// To the nearest; what has no room in 64 bits, as in a damaged file, is the largest number.
[[nodiscard]] constexpr std::uint64_t rounded(double x) noexcept {
  // std::round is not constexpr. NOLINTNEXTLINE(bugprone-incorrect-roundings)
  return x < 0x1p64 - 4096 ? static_cast<std::uint64_t>(x + 0.5) : ~std::uint64_t{0};
}

[[nodiscard]] constexpr weight weight_of(std::uint64_t bytes, std::uint64_t interval) noexcept {
  if (interval <= 1) return {1024, bytes, 0};
  const double size = static_cast<double>(bytes);
  const double p = one_minus_exp_of_minus(size / static_cast<double>(interval));
  if (p <= 0) return {0, 0, 0};  // an empty block, which is never sampled
  return {rounded(1024 / p), rounded(size / p), size / p * (size / p) * (1 - p)};
}

/// Of x > 0, to a relative 1e-12 (Newton's method, from half the exponent).
[[nodiscard]] constexpr double square_root(double x) noexcept {
  double root = std::bit_cast<double>((std::bit_cast<std::uint64_t>(x) >> 1) + (std::uint64_t{1023} << 51));
  for (int i = 0; i < 5; ++i) root = (root + x / root) / 2;
  return root;
}

/// What the truth is not below, but in one of 30,000 cases (four standard deviations): so the
/// highest of many estimates may be looked for. 0 where nothing is certain.
[[nodiscard]] constexpr std::uint64_t certain_part(std::uint64_t estimate, double variance) noexcept {
  if (!(variance > 0)) return estimate;
  const double least = static_cast<double>(estimate) - 4 * square_root(variance);
  return least > 0 ? static_cast<std::uint64_t>(least) : 0;
}

[[nodiscard]] constexpr weight weight_of(std::uint64_t bytes, sampling_interval interval) noexcept {
  return interval.is_one() ? weight{1024, bytes, 0} : weight_of(bytes, interval.bytes());
}

}  // namespace heapwright::segment
