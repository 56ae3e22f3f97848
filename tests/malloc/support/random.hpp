// A small deterministic generator (splitmix64): the same seed gives the same run on every machine.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace test {

class random {
 public:
  explicit random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  /// 0 .. n-1.
  std::size_t below(std::size_t n) noexcept { return static_cast<std::size_t>(next() % n); }

  /// Sizes as programs ask for them: every power of two up to 2^max_exponent about equally often,
  /// any value between.
  std::size_t size(unsigned max_exponent) noexcept {
    const std::size_t exponent = below(max_exponent + 1);
    return below((std::size_t{1} << exponent) + 1);
  }

 private:
  std::uint64_t state_;
};

}  // namespace test
