// Whether a number is a multiple of another, and how often that goes into it, without a division.
//
// The divisor is odd * 2^shift. Modulo 2^64 an odd number has an inverse, and n * inverse(odd),
// rotated right by shift, is n / divisor if n is a multiple. It is above (2^64 - 1) / divisor if n
// is none, for all 2^64 values of n. (Granlund and Montgomery, Division by Invariant Integers, PLDI
// 1994, section 9.)
#pragma once

#include <bit>
#include <cstdint>

#include <heapwright/core/language.hpp>

namespace heapwright {

class exact_divisor {
 public:
  /// `divisor` is not 0.
  explicit constexpr exact_divisor(std::uint64_t divisor) noexcept
      : inverse_(inverse_of(divisor >> std::countr_zero(divisor))), shift_(std::countr_zero(divisor)) {}

  /// n / divisor if n is a multiple, or else more than any quotient is.
  [[nodiscard]] constexpr std::uint64_t quotient(std::uint64_t n) const noexcept {
    return std::rotr(n * inverse_, shift_);
  }

 private:
  /// Newton's iteration, whose right bits double from 5 each time.
  static constexpr std::uint64_t inverse_of(std::uint64_t odd) noexcept {
    std::uint64_t inverse = (3 * odd) ^ 2;
    for (int bits = 5; bits < 64; bits *= 2) inverse *= 2 - odd * inverse;
    return inverse;
  }

  std::uint64_t inverse_;
  int shift_;
};

}  // namespace heapwright
