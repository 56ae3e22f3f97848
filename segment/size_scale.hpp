// The scale on which the probe counts blocks by their size: four classes per doubling from 64 bytes
// to a MiB, one per doubling beyond.
//
// A block's size here is what malloc_usable_size says of it, which is the same when it is freed as
// when it was allocated: so a free counts in the class of its allocation, in any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace heapwright::segment {

class size_scale {
 public:
  static constexpr unsigned count = 80;

  /// The class of a block of `size` bytes: the first whose largest is not less; the last for what
  /// is longer than all.
  [[nodiscard]] static constexpr unsigned index(std::uint64_t size) noexcept {
    if (size <= 64) return static_cast<unsigned>((size - std::uint64_t{size != 0}) / 16);
    const auto doublings = static_cast<unsigned>(63 ^ std::countl_zero(size - 1));
    // 2^doublings < size <= 2^(doublings + 1), and what is left of size - 1 is from 4 to 7
    if (size <= fine_end) [[likely]]
      return (doublings - 6) * 4 + static_cast<unsigned>((size - 1) >> (doublings - 2));
    const unsigned c = fine_classes + doublings - 20;
    return c < count ? c : count - 1;
  }

  /// Bytes of the longest block of a class.
  [[nodiscard]] static constexpr std::uint64_t largest(unsigned c) noexcept {
    if (c < 4) return (c + 1) * std::uint64_t{16};
    if (c < fine_classes) return std::uint64_t{5 + (c - 4) % 4} << (4 + (c - 4) / 4);
    return fine_end << (c - fine_classes + 1);
  }

 private:
  static constexpr std::uint64_t fine_end = 1 << 20;
  static constexpr unsigned fine_classes = 4 + 14 * 4;
};

static_assert(size_scale::largest(59) == 1 << 20 && size_scale::index(1 << 20) == 59);
static_assert(size_scale::index(65) == 4 && size_scale::index(80) == 4 && size_scale::index(81) == 5);
static_assert(size_scale::index((1 << 20) + 1) == 60 && size_scale::largest(60) == 2 << 20);

}  // namespace heapwright::segment
