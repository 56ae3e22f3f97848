#include "tried_recipe.hpp"

#include <algorithm>

#include "proof.hpp"

namespace heapwright::tool {

double predicted(const tried_recipe& one, fit_goal goal, double malloc_share) {
  const double memory = one.peak_ratio, time = 1 + malloc_share * (one.malloc_time_ratio - 1);
  return goal == fit_goal::memory ? memory : goal == fit_goal::both ? memory * time : time;
}

bool is_harmed(const tried_recipe& one) { return one.peak_ratio > 1 + most_harm; }

bool seems_slow(const tried_recipe& one, double malloc_share) {
  return predicted(one, fit_goal::time, malloc_share) > 1 + most_harm;
}

std::vector<const tried_recipe*> choose_finalists(std::deque<tried_recipe>& tried, fit_goal goal, double malloc_share,
                                                  std::size_t most) {
  const auto prediction = [&](const tried_recipe* one) { return predicted(*one, goal, malloc_share); };
  std::vector<tried_recipe*> good;
  for (tried_recipe& one : tried) {
    const bool may_gain =
        prediction(&one) < 1 - seen_in_memory || (goal != fit_goal::memory && one.what.gains_outside_malloc);
    if (one.failure.empty() && !is_harmed(one) && !one.adds_nothing && may_gain) good.push_back(&one);
  }
  std::ranges::stable_sort(good, {}, prediction);
  // Of the slow ones the first half of the places; then, where places are left, the others of them.
  std::size_t chosen = 0;
  const auto add = [&](tried_recipe* one) {
    if (chosen == most || one->is_finalist) return;
    one->is_finalist = true;
    ++chosen;
  };
  std::size_t slow = 0;
  for (tried_recipe* const one : good)
    if (!seems_slow(*one, malloc_share) || ++slow <= most / 2) add(one);
  for (tried_recipe* const one : good) add(one);
  std::vector<const tried_recipe*> finalists;
  for (const tried_recipe* const one : good)
    if (one->is_finalist) finalists.push_back(one);
  return finalists;
}

}  // namespace heapwright::tool
