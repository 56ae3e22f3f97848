// Size classes: the rounded sizes a heap hands out, so that a freed block fits the next request of about its size.
//
// Classes are numbered 1 .. count; 0 means "none: too large". They rise in steps of 16 bytes up to 16 * k and then in k
// equal steps per doubling, so that rounding wastes at most 1/k of a block (1/(2k) on average) and every power of two
// from 16 up is a class. Both directions are closed formulas; heaps put the small end into a table.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/bits.hpp>

namespace heapwright {

struct size_class_plan {
  std::size_t steps_per_doubling = 8;  ///< k: a power of two
  std::size_t largest = 256 * KiB;     ///< the last class, a power of two

  static constexpr std::size_t smallest_step = 16;

  /// Up to here class c holds 16 * c bytes: the first doubling after the linear end has steps of 16 too.
  [[nodiscard]] constexpr std::size_t even_up_to() const noexcept {
    return 2 * linear_end() < largest ? 2 * linear_end() : largest;
  }

  [[nodiscard]] constexpr bool valid() const noexcept {
    return is_power_of_two(steps_per_doubling) && is_power_of_two(largest) && largest >= linear_end() && count() < 255;
  }

  /// The class that holds `size` bytes. Precondition: size <= largest.
  [[nodiscard]] constexpr unsigned index(std::size_t size) const noexcept {
    if (size <= smallest_step) return 1;
    if (size <= linear_end()) return static_cast<unsigned>(divide_up(size, smallest_step));
    const unsigned exponent = floor_log2(size - 1);
    const unsigned shift = exponent - floor_log2(steps_per_doubling);
    const std::size_t doublings = exponent - floor_log2(linear_end());
    return static_cast<unsigned>(doublings * steps_per_doubling + ((size - 1) >> shift) + 1);
  }

  /// Bytes in a block of class c. Precondition: 1 <= c <= count().
  [[nodiscard]] constexpr std::size_t size(unsigned c) const noexcept {
    if (c <= steps_per_doubling) return c * smallest_step;
    const std::size_t doublings = (c - 1) / steps_per_doubling - 1;
    const std::size_t step = (c - 1) % steps_per_doubling + steps_per_doubling;
    return ((step + 1) * smallest_step) << doublings;
  }

  [[nodiscard]] constexpr unsigned count() const noexcept { return index(largest); }

 private:
  [[nodiscard]] constexpr std::size_t linear_end() const noexcept { return smallest_step * steps_per_doubling; }
};

}  // namespace heapwright
