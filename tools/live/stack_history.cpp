#include "stack_history.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace heapwright::tool {

bool stack_history::is_due(std::uint64_t now_ns, std::uint64_t calls) const noexcept {
  if (moments_.empty()) return true;
  return calls != last_calls_ && now_ns >= moments_.back()->at_ns + std::max(spacing_ns_, 100 * last_took_ns_);
}

void stack_history::add(std::shared_ptr<const baseline> moment, std::uint64_t calls, std::uint64_t took_ns) {
  if (!moments_.empty() && moment->at_ns <= moments_.back()->at_ns) return;
  last_calls_ = calls;
  last_took_ns_ = took_ns;
  moments_.push_back(std::move(moment));
  const auto figures = [this] {
    return std::accumulate(moments_.begin(), moments_.end(), std::size_t{0},
                           [](std::size_t sum, const auto& m) { return sum + m->stacks.size(); });
  };
  while (moments_.size() > most_moments || (moments_.size() > least_moments && figures() > most_figures))
    drop_every_second();
}

/// The first stays, as it is the beginning.
void stack_history::drop_every_second() {
  std::vector<std::shared_ptr<const baseline>> kept;
  for (std::size_t i = 0; i < moments_.size(); i += 2) kept.push_back(std::move(moments_[i]));
  moments_ = std::move(kept);
  spacing_ns_ *= 2;
}

std::shared_ptr<const baseline> stack_history::nearest(std::uint64_t at_ns) const {
  const auto distance = [&](const auto& m) { return std::max(m->at_ns, at_ns) - std::min(m->at_ns, at_ns); };
  const auto found = std::ranges::min_element(moments_, {}, distance);
  return found == moments_.end() ? nullptr : *found;
}

}  // namespace heapwright::tool
