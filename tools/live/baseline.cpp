#include "baseline.hpp"

namespace heapwright::tool {

stack_counts counts_of(const segment::stack_figures& s) {
  return {.live = s.live_bytes(),
          .at_peak = s.at_peak,
          .allocated_bytes = s.allocated_bytes,
          .short_lived_bytes = s.short_lived_bytes,
          .allocations = s.allocations,
          .allocated_variance = s.allocated_variance,
          .freed_variance = s.freed_variance,
          .thinned_variance = s.thinned_variance};
}

stack_counts baseline::of(segment::reference stack) const {
  const auto found = std::ranges::lower_bound(stacks, stack, {}, [](const auto& s) { return s.first; });
  return found == stacks.end() || found->first != stack ? stack_counts{} : found->second;
}

baseline baseline_of(const std::vector<segment::stack_figures>& stacks, std::uint64_t at_ns) {
  baseline made;
  made.at_ns = at_ns;
  made.stacks.reserve(stacks.size());
  for (const segment::stack_figures& s : stacks) made.stacks.emplace_back(s.id, counts_of(s));
  return made;
}

}  // namespace heapwright::tool
