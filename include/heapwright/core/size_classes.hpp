// Size classes: the rounded sizes a heap hands out, so that a freed block fits the next request of
// about its size.
//
// Classes are numbered 1 .. count; 0 means "none: too large". They rise in steps of 16 bytes up to
// 16 * k and then in k equal steps per doubling, so that rounding wastes at most 1/k of a block
// (1/(2k) on average) and every power of two from 16 up is a class. Both directions are closed
// formulas; heaps put the small end into a table.
//
// A program that asks for few sizes can have just these: they come first then, and the steps behind
// the last of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include <heapwright/core/bits.hpp>

namespace heapwright {

/// Sizes of blocks in bytes, one by one, rising; at most 32.
struct size_list {
  /// How many sizes a list may have.
  static constexpr std::size_t most = 32;

  /// No sizes.
  constexpr size_list() noexcept = default;

  /// Keeps the first `most` sizes, and counts all: a longer list is refused where a recipe is used.
  constexpr size_list(std::initializer_list<std::size_t> list) noexcept : count(list.size()) {
    std::size_t i = 0;
    for (const std::size_t size : list) {
      if (i < most) sizes[i++] = size;
    }
  }

  /// Whether there are none; and the largest, or 0.
  [[nodiscard]] constexpr bool empty() const noexcept { return count == 0; }
  [[nodiscard]] constexpr std::size_t last() const noexcept { return empty() ? 0 : sizes[count - 1]; }

  /// Whether each size is larger than the one before it.
  [[nodiscard]] constexpr bool is_rising() const noexcept {
    for (std::size_t i = 1; i < count; ++i) {
      if (sizes[i] <= sizes[i - 1]) return false;
    }
    return true;
  }

  /// Whether all sizes are multiples of n.
  [[nodiscard]] constexpr bool are_multiples_of(std::size_t n) const noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (sizes[i] % n != 0) return false;
    }
    return true;
  }

  std::array<std::size_t, most> sizes{};  ///< bytes; the first `count` of them count
  std::size_t count = 0;                  ///< how many there are
};

/// Which sizes a heap rounds requests to.
struct size_class_plan {
  std::size_t steps_per_doubling = 8;  ///< k: a power of two
  std::size_t largest = 256 * KiB;     ///< the last class, a power of two
  /// The first classes, instead of steps; multiples of 8, and the last is 16 bytes times a number
  /// the steps have too. Where there are odd multiples of 8, blocks for sizes that are no multiple
  /// of 16 may be aligned to 8 only: no object with an alignment of 16 has such a size.
  size_list exact{};

  /// Bytes of the smallest class, and between the first ones.
  static constexpr std::size_t smallest_step = 16;

  /// What sizes differ by, at least, that have different classes; and what every block is aligned
  /// to.
  [[nodiscard]] constexpr std::size_t granule() const noexcept { return exact.are_multiples_of(16) ? 16 : 8; }

  /// Up to here class c holds 16 * c bytes: the first doubling after the linear end has steps of 16
  /// too.
  [[nodiscard]] constexpr std::size_t even_up_to() const noexcept {
    if (!exact.empty()) return 0;
    return 2 * linear_end() < largest ? 2 * linear_end() : largest;
  }

  /// Whether the members keep the rules that stand beside them.
  [[nodiscard]] constexpr bool steps_are_valid() const noexcept {
    return is_power_of_two(steps_per_doubling) && is_power_of_two(largest) && largest >= linear_end();
  }

  /// Whether `exact` is rising, of multiples of 8, and no longer than it may be.
  [[nodiscard]] constexpr bool exact_is_valid() const noexcept {
    return exact.empty() ||
           (exact.count <= size_list::most && exact.is_rising() && exact.are_multiples_of(8) && exact.sizes[0] >= 16);
  }

  /// Whether the last size of `exact` is one that the steps have too.
  [[nodiscard]] constexpr bool exact_meets_steps() const noexcept {
    return exact.empty() || (exact.last() <= largest && step_size(step(exact.last())) == exact.last());
  }

  /// The class that holds `size` bytes. Precondition: size <= largest.
  [[nodiscard, gnu::always_inline]] constexpr unsigned index(std::size_t size) const noexcept {
    if (exact.empty()) return step(size);
    return size <= exact.last() ? exact_index(size)
                                : static_cast<unsigned>(step(size) + exact.count - step(exact.last()));
  }

  /// Bytes in a block of class c. Precondition: 1 <= c <= count().
  [[nodiscard]] constexpr std::size_t size(unsigned c) const noexcept {
    if (exact.empty()) return step_size(c);
    return c <= exact.count ? exact.sizes[c - 1]
                            : step_size(static_cast<unsigned>(c - exact.count + step(exact.last())));
  }

  /// How many classes there are.
  [[nodiscard]] constexpr unsigned count() const noexcept { return index(largest); }

 private:
  [[nodiscard]] constexpr std::size_t linear_end() const noexcept { return smallest_step * steps_per_doubling; }

  [[nodiscard]] constexpr unsigned step(std::size_t size) const noexcept {
    if (size <= smallest_step) return 1;
    if (size <= linear_end()) return static_cast<unsigned>(divide_up(size, smallest_step));
    const unsigned exponent = floor_log2(size - 1);
    const unsigned shift = exponent - floor_log2(steps_per_doubling);
    const std::size_t doublings = exponent - floor_log2(linear_end());
    return static_cast<unsigned>(doublings * steps_per_doubling + ((size - 1) >> shift) + 1);
  }

  [[nodiscard]] constexpr std::size_t step_size(unsigned n) const noexcept {
    if (n <= steps_per_doubling) return n * smallest_step;
    // The analyser does not know the fields of a constant recipe.
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    const std::size_t doublings = (n - 1) / steps_per_doubling - 1;
    const std::size_t in_doubling = (n - 1) % steps_per_doubling + steps_per_doubling;
    return ((in_doubling + 1) * smallest_step) << doublings;
  }

  /// Only blocks that are multiples of 16 hold objects that have to be aligned to 16.
  [[nodiscard]] constexpr unsigned exact_index(std::size_t size) const noexcept {
    const bool may_be_odd = align_up(size, 8) % 16 != 0;
    for (std::size_t i = 0; i < exact.count; ++i) {
      if (exact.sizes[i] >= size && (may_be_odd || exact.sizes[i] % 16 == 0)) return static_cast<unsigned>(i + 1);
    }
    return 0;  // the last is a multiple of 16
  }
};

}  // namespace heapwright
