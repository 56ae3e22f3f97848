// Which size classes lose least to a program: a choice of sizes for recipe.classes.exact.
//
// Problem    a block is rounded up to its size class. Few classes round much; many have spans of
//            their own, each of which is partly free.
// How        dynamic programming over the sizes that live at the peak: of all choices of up to 32
//            sizes, the one with the least sum of rounding, what is left over at the end of spans,
//            and partly used spans, which each thread has of its own. Each step of the default's
//            classes is tried as the end. Blocks that live at another time, or are freed at once,
//            count too, for less.
// Limits     multiples of 16 alone: with odd multiples of 8 blocks would be aligned to 8, and some
//            programs have tags in the lowest four bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <heapwright/heap/recipe.hpp>

#include "observation.hpp"

namespace heapwright::tool {

struct size_choice {
  /// The longest spans of these sizes: few blocks of a page or so fill 32 KiB well.
  static constexpr span_length spans{32 * KiB, 8, 128};

  std::vector<std::uint64_t> sizes;   ///< bytes, rising; empty: none loses less than the default
  std::uint64_t loss_by_default = 0;  ///< bytes at the peak: rounding, and partly used spans
  std::uint64_t loss = 0;             ///< of these sizes
};

/// `uses`: rising by size. Pure; some tenth of a second, whatever the program does.
size_choice choose_sizes(std::span<const size_use> uses, std::uint64_t threads_at_once);

/// Bytes that rounding takes at the peak, with this number of steps per doubling.
std::uint64_t rounding_at_peak(std::span<const size_use> uses, std::uint64_t steps_per_doubling);

/// Size classes of the default recipe that the program uses.
std::uint64_t classes_in_use(std::span<const size_use> uses);

}  // namespace heapwright::tool
