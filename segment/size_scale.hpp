// The scale on which the probe counts blocks by their size: four classes per doubling from 64 bytes
// to a MiB, one per doubling beyond.
//
// A block's size here is what malloc_usable_size says of it, which is the same when it is freed as
// when it was allocated: so a free counts in the class of its allocation, in any thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace heapwright::segment {
namespace size_steps {

inline constexpr unsigned size_classes = 80;
inline constexpr unsigned fine_size_classes = 4 + 14 * 4;
inline constexpr std::uint64_t fine_sizes_end = 1 << 20;
inline constexpr std::uint64_t small_sizes_end = 1024;

constexpr unsigned calculated_class_of(std::uint64_t size) noexcept {
  if (size <= 64) return static_cast<unsigned>((size - std::uint64_t{size != 0}) / 16);
  const auto doublings = static_cast<unsigned>(63 ^ std::countl_zero(size - 1));
  // 2^doublings < size <= 2^(doublings + 1), and what is left of size - 1 is from 4 to 7
  if (size <= fine_sizes_end) [[likely]]
    return (doublings - 6) * 4 + static_cast<unsigned>((size - 1) >> (doublings - 2));
  const unsigned c = fine_size_classes + doublings - 20;
  return c < size_classes ? c : size_classes - 1;
}

/// By units of 16 bytes, at which all classes of small sizes end. In one cache line and a byte.
alignas(64) inline constexpr std::array<std::uint8_t, small_sizes_end / 16 + 1> class_of_small_size = [] {
  std::array<std::uint8_t, small_sizes_end / 16 + 1> classes{};
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::uint8_t>(calculated_class_of(i * 16));
  return classes;
}();

}  // namespace size_steps

class size_scale {
 public:
  static constexpr unsigned count = size_steps::size_classes;

  /// The class of a block of `size` bytes: the first whose largest is not less; the last for what
  /// is longer than all.
  [[nodiscard]] static constexpr unsigned index(std::uint64_t size) noexcept {
    if (size <= size_steps::small_sizes_end) [[likely]]
      return size_steps::class_of_small_size[(size + 15) / 16];
    return size_steps::calculated_class_of(size);
  }

  /// Bytes of the longest block of a class.
  [[nodiscard]] static constexpr std::uint64_t largest(unsigned c) noexcept {
    if (c < 4) return (c + 1) * std::uint64_t{16};
    if (c < size_steps::fine_size_classes) return std::uint64_t{5 + (c - 4) % 4} << (4 + (c - 4) / 4);
    return size_steps::fine_sizes_end << (c - size_steps::fine_size_classes + 1);
  }
};

static_assert(size_scale::largest(59) == 1 << 20 && size_scale::index(1 << 20) == 59);
static_assert(size_scale::index(65) == 4 && size_scale::index(80) == 4 && size_scale::index(81) == 5);
static_assert(size_scale::index((1 << 20) + 1) == 60 && size_scale::largest(60) == 2 << 20);
static_assert(size_scale::index(0) == 0 && size_scale::index(16) == 0 && size_scale::index(17) == 1);
static_assert(size_scale::index(1024) == 19 && size_scale::index(1025) == 20 && size_scale::largest(19) == 1024);

}  // namespace heapwright::segment
