// What stacks had counted by a moment, to be compared with another moment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "segment_reader.hpp"

namespace heapwright::tool {

/// Of one stack, in all.
struct stack_counts {
  std::uint64_t live = 0;
  std::int64_t at_peak = 0;
  std::uint64_t allocated_bytes = 0, short_lived_bytes = 0;
  double allocations = 0;
  double allocated_variance = 0, freed_variance = 0, thinned_variance = 0;  ///< bytes^2

  /// Of `live` as an estimate, in bytes^2.
  [[nodiscard]] double live_variance() const noexcept {
    return std::max(allocated_variance - freed_variance + thinned_variance, 0.0);
  }
};

[[nodiscard]] stack_counts counts_of(const segment::stack_figures& s);

struct baseline {
  std::string name;
  std::uint64_t at_ns = 0;
  std::vector<std::pair<segment::reference, stack_counts>> stacks;  ///< by id

  /// Zeros where the stack was not there yet. O(log stacks).
  [[nodiscard]] stack_counts of(segment::reference stack) const;
};

/// `stacks` by id.
[[nodiscard]] baseline baseline_of(const std::vector<segment::stack_figures>& stacks, std::uint64_t at_ns);

}  // namespace heapwright::tool
