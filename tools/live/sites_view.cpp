// Tables of call sites, and of those that look like leaks.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "call_sites.hpp"
#include "leak_signs.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;
using segment::stack_figures;

json site_part(const call_site& site, const moment& m, place_table& places) {
  stack_question peak;
  peak.value = stack_value::peak;
  const measured at_peak = measure(site.sum, peak);
  json numbers = json::array();
  for (const std::uint32_t place : site.places) numbers.push_back(places.number(place));
  const stack_figures& s = site.sum;
  return {{"id", s.id},
          {"stack", numbers},
          {"site", site.site},
          {"caller", site.caller < site.places.size() ? json(site.caller) : json(nullptr)},
          {"is_cut", s.is_cut},
          {"stacks", site.calls.size()},
          {"live_bytes", s.live_bytes()},
          {"live_bytes_error", std::round(error_of(s.live_variance(), s.unseen()))},
          {"live_blocks", std::round(s.live_blocks())},
          {"at_peak", std::round(at_peak.value)},
          {"at_peak_error", std::round(error_of(at_peak))},
          {"allocations", std::round(s.allocations)},
          {"allocated_bytes", s.allocated_bytes},
          {"allocated_bytes_error", std::round(error_of(s.allocated_variance, s.unseen()))},
          {"frees", std::round(s.frees)},
          {"short_lived", std::round(s.short_lived)},
          {"short_lived_bytes", s.short_lived_bytes},
          {"samples", s.samples},
          {"live_samples", s.live_samples},
          {"first", m.unix_seconds(s.first_ns)},
          {"last", m.unix_seconds(s.last_ns)}};
}

}  // namespace

std::string sites_view(watched_process& process, const stack_question& question) {
  seen_stacks stacks = process.stacks();
  const auto seen = stacks.seen;
  std::vector<call_site> all =
      call_sites(asked_stacks(std::move(stacks), process.places(), question), process.places());
  // A site may grow in one stack and shrink in another.
  if (question.is_of_growth())
    for (call_site& site : all) site.value.value = std::abs(site.value.grown);
  // With a baseline: those that grew most first, then those that shrank least. Beside another run:
  // those that differ most.
  const auto order = [&](const call_site& s) { return question.since ? s.value.grown : s.value.value; };
  const std::size_t shown = std::min(question.most, all.size());
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(shown), std::ranges::greater{}, order);
  const std::size_t left_out = all.size() - shown;
  double left_out_value = 0;
  for (std::size_t i = shown; i < all.size(); ++i) left_out_value += all[i].value.value;
  all.resize(shown);
  place_table places(process.places());
  json rows = json::array();
  for (const call_site& site : all) {
    json row = site_part(site, *seen, places);
    row["value"] = std::round(site.value.value);
    row["value_error"] = std::round(error_of(site.value));
    row["grown"] = question.is_of_growth() ? json(std::round(site.value.grown)) : json(nullptr);
    rows.push_back(std::move(row));
  }
  const json result = {{"at", seen->unix_seconds(seen->figures.at_ns)},
                       {"left_out", {{"sites", left_out}, {"value", std::round(left_out_value)}}},
                       {"hint", hint_at_symbols(all, process.places())},
                       {"places", places.rows()},
                       {"sites", rows}};
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string leaks_view(watched_process& process, std::size_t most) {
  const auto seen = process.now();
  const moment& m = *seen;
  const std::uint64_t now = m.figures.at_ns;
  const time_span watched{std::min(std::max(m.figures.process.counting_since_ns, m.figures.process.started_ns), now),
                          now};
  std::unordered_map<segment::reference, std::vector<aged_block>> of_stack;
  for (const segment::sample_figures& sample : process.live_samples())
    of_stack[sample.at_stack].push_back({sample.at_ns, static_cast<double>(sample.bytes_for), sample.variance()});

  struct candidate {
    call_site site;
    leak_signs found;
  };
  std::vector<candidate> growing;
  std::size_t looked_at = 0, judged_count = 0;
  for (call_site& site : call_sites(process)) {
    std::vector<aged_block> blocks;
    for (const segment::reference stack : site.stacks)
      if (const auto found = of_stack.find(stack); found != of_stack.end())
        blocks.insert(blocks.end(), found->second.begin(), found->second.end());
    if (blocks.empty()) continue;
    ++looked_at;
    const leak_signs judged = signs_of_leak(std::move(blocks), {site.sum.lifetimes}, watched);
    judged_count += judged.has_enough_samples ? 1 : 0;
    if (judged.is_growing) growing.push_back({std::move(site), judged});
  }
  std::ranges::sort(growing, std::ranges::greater{}, [](const candidate& c) { return c.found.bytes_per_second; });

  place_table places(process.places());
  json rows = json::array();
  std::vector<call_site> listed;
  for (std::size_t i = 0; i < std::min(most, growing.size()); ++i) {
    candidate& c = growing[i];
    json row = site_part(c.site, m, places);
    row["bytes_per_second"] = std::round(c.found.bytes_per_second);
    row["bytes_per_second_error"] =
        std::round(error_of(c.found.variance, c.site.sum.unseen() / std::max(watched.seconds() / 2, 1e-3)));
    row["overdue_bytes"] = std::round(c.found.overdue_bytes);
    row["usual_life"] = freed_blocks{c.site.sum.lifetimes}.usual_life_seconds();
    row["live_by_time"] = c.found.bytes_by_time;
    rows.push_back(std::move(row));
    listed.push_back(std::move(c.site));
  }
  const json result = {{"at", m.unix_seconds(now)},
                       {"begin", m.unix_seconds(watched.begin_ns)},
                       {"slots", leak_signs::slots},
                       {"sites_with_live_samples", looked_at},
                       {"sites_judged", judged_count},
                       {"left_out", growing.size() - rows.size()},
                       {"hint", hint_at_symbols(listed, process.places())},
                       {"places", places.rows()},
                       {"sites", rows}};
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace heapwright::tool
