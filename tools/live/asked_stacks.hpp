// The stacks that a question is about, each with its places and what it contributes.
#pragma once

#include <cstdint>
#include <vector>

#include "stack_measure.hpp"

namespace heapwright::tool {

struct asked_stack {
  segment::stack_figures figures;
  std::vector<std::uint32_t> places;  ///< the innermost first
  measured value;
};

/// Compared with another run, stacks are joined that have the same functions there; one that is in
/// the other run alone has figures of zeros, and an id that no other has. O(stacks * depth).
[[nodiscard]] std::vector<asked_stack> asked_stacks(seen_stacks stacks, places_book& book,
                                                    const stack_question& question);

}  // namespace heapwright::tool
