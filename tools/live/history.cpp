#include "history.hpp"

#include <algorithm>

namespace heapwright::tool {
namespace {

/// Puts the point behind the others, or in the last one's place if both are of one stretch.
template <class Points>
void merge_into(Points& points, const history_point& point, std::uint64_t spacing_ns) {
  if (points.empty() || points.back().at_ns / spacing_ns != point.at_ns / spacing_ns)
    points.push_back(point);
  else if (point.live >= points.back().live)
    points.back() = point;
}

}  // namespace

void history::add(const history_point& point) {
  const auto& newest = tiers_[0].points;
  if (!newest.empty() && point.at_ns <= newest.back().at_ns) return;
  add_to(0, point);
}

void history::add_to(std::size_t t, const history_point& point) {
  tier& here = tiers_[t];
  merge_into(here.points, point, here.spacing_ns);
  // An hour is an hour, however slowly points come.
  const std::uint64_t age = t == 0 ? 3600 * second : here.spacing_ns * here.most;
  while (here.points.size() > here.most || point.at_ns - here.points.front().at_ns > age) {
    if (t + 1 < tiers_.size()) add_to(t + 1, here.points.front());
    here.points.pop_front();
  }
}

std::size_t history::size() const noexcept {
  std::size_t sum = 0;
  for (const tier& t : tiers_) sum += t.points.size();
  return sum;
}

std::vector<history_point> history::points(std::uint64_t since_ns, std::size_t most) const {
  std::vector<history_point> all;
  for (auto t = tiers_.rbegin(); t != tiers_.rend(); ++t)
    std::copy_if(t->points.begin(), t->points.end(), std::back_inserter(all),
                 [&](const history_point& p) { return p.at_ns > since_ns; });
  if (all.size() <= most || most < 2) return all;
  // The newest stays as it is: it is what "now" means to a viewer.
  const std::uint64_t span = all.back().at_ns - all.front().at_ns;
  const std::uint64_t spacing = std::max<std::uint64_t>(span / (most - 2) + 1, 1);
  std::vector<history_point> chosen;
  for (const history_point& p : all) merge_into(chosen, p, spacing);
  if (chosen.back().at_ns != all.back().at_ns) chosen.back() = all.back();
  return chosen;
}

}  // namespace heapwright::tool
