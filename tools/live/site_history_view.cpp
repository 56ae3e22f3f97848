// What sites have had over time, as stacked areas show it.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "call_sites.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

/// Sums over stacks, up to a moment.
struct totals {
  std::uint64_t allocated_bytes = 0, short_lived_bytes = 0;
};

template <class IsAskedFor>
totals totals_of(const baseline& moment, IsAskedFor is_asked_for) {
  totals sum;
  for (const auto& [id, counts] : moment.stacks) {
    if (!is_asked_for(id)) continue;
    sum.allocated_bytes += counts.allocated_bytes;
    sum.short_lived_bytes += counts.short_lived_bytes;
  }
  return sum;
}

/// At the moment, or when it was looked at last before; null: not known.
json rss_at(const std::vector<history_point>& points, std::uint64_t at_ns) {
  const auto after = std::ranges::upper_bound(points, at_ns, {}, &history_point::at_ns);
  return after == points.begin() || std::prev(after)->rss == 0 ? json(nullptr) : json(std::prev(after)->rss);
}

}  // namespace

std::string site_history_view(watched_process& process, const std::string& threads, std::size_t most) {
  seen_stacks stacks = process.stacks();
  const auto seen = stacks.seen;
  std::vector<std::shared_ptr<const baseline>> moments = process.past_stacks();
  // Of a saved run the last moment is as old as the others.
  if (moments.empty() || moments.back()->at_ns < seen->figures.at_ns)
    moments.push_back(std::make_shared<const baseline>(baseline_of(stacks.figures, seen->figures.at_ns)));

  stack_question question;
  question.threads = threads;
  const std::vector<call_site> sites =
      call_sites(asked_stacks(std::move(stacks), process.places(), question), process.places());
  std::unordered_map<segment::reference, std::size_t> site_of;
  for (std::size_t i = 0; i < sites.size(); ++i)
    for (const segment::reference stack : sites[i].stacks) site_of[stack] = i;
  // A stack that has come since the stacks were read is not known to be of these threads.
  const auto is_asked_for = [&](segment::reference stack) { return threads.empty() || site_of.contains(stack); };

  std::vector<std::vector<double>> live(sites.size(), std::vector<double>(moments.size()));
  std::vector<double> all(moments.size());
  for (std::size_t t = 0; t < moments.size(); ++t)
    for (const auto& [id, counts] : moments[t]->stacks) {
      if (!is_asked_for(id)) continue;
      all[t] += static_cast<double>(counts.live);
      if (const auto site = site_of.find(id); site != site_of.end())
        live[site->second][t] += static_cast<double>(counts.live);
    }

  std::vector<std::size_t> order(sites.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto peak = [&](std::size_t site) { return *std::ranges::max_element(live[site]); };
  std::ranges::stable_sort(order, std::ranges::greater{}, peak);
  std::erase_if(order, [&](std::size_t site) { return !(peak(site) > 0); });
  order.resize(std::min(order.size(), most));

  place_table places(process.places());
  json rows = json::array();
  std::vector<double> others = all;
  for (const std::size_t i : order) {
    const call_site& site = sites[i];
    const bool has_place = !site.places.empty(), has_caller = site.caller < site.places.size();
    rows.push_back({{"id", site.sum.id},
                    {"place", has_place ? json(places.number(site.places[site.site])) : json(nullptr)},
                    {"caller", has_caller ? json(places.number(site.places[site.caller])) : json(nullptr)},
                    {"live", live[i]}});
    for (std::size_t t = 0; t < moments.size(); ++t) others[t] -= live[i][t];
  }
  const auto points = process.points(0, SIZE_MAX);
  json at = json::array(), rss = json::array(), allocated = json::array(), short_lived = json::array();
  for (const auto& m : moments) {
    const totals sum = totals_of(*m, is_asked_for);
    at.push_back(seen->unix_seconds(m->at_ns));
    rss.push_back(rss_at(points, m->at_ns));
    allocated.push_back(sum.allocated_bytes);
    short_lived.push_back(sum.short_lived_bytes);
  }
  return json({{"at", at},
               {"rss", rss},
               {"allocated_bytes", allocated},
               {"short_lived_bytes", short_lived},
               {"others", others},
               {"places", places.rows()},
               {"sites", rows}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace heapwright::tool
