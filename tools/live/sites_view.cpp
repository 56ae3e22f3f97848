// Tables of sites. A site is a call stack; its name is the place where the program's own code asked for memory.
#include <algorithm>
#include <cmath>

#include "stack_measure.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;
using trace::lifetime_buckets;
using trace::stack_figures;

constexpr std::size_t age_slots = 24;

json stack_part(const stack_figures& s, const moment& m, watched_process& process, place_table& places) {
  const auto all = places_of(s, m.figures, process.places());
  json numbers = json::array();
  for (const std::uint32_t place : all) numbers.push_back(places.number(place));
  return {{"id", s.id},
          {"stack", numbers},
          {"site", site_in(all, process.places())},
          {"is_cut", s.is_cut},
          {"live_bytes", s.live_bytes()},
          {"live_blocks", std::round(s.live_blocks())},
          {"allocations", std::round(s.allocations)},
          {"allocated_bytes", s.allocated_bytes},
          {"frees", std::round(s.frees)},
          {"short_lived", std::round(s.short_lived)},
          {"short_lived_bytes", s.short_lived_bytes},
          {"samples", s.samples},
          {"live_samples", s.live_samples},
          {"first", m.unix_seconds(s.first_ns)},
          {"last", m.unix_seconds(s.last_ns)}};
}

/// The longest that all but a hundredth of the freed blocks lived; 0 if none was freed.
double usual_life_seconds(const stack_figures& s) {
  std::uint64_t all = 0, sum = 0;
  for (const std::uint64_t count : s.lifetimes) all += count;
  if (all == 0) return 0;
  for (unsigned b = 0; b < lifetime_buckets; ++b) {
    sum += s.lifetimes[b];
    if (sum * 100 >= all * 99) return std::ldexp(1e-6, static_cast<int>(2 * b));
  }
  return 0;
}

/// A site's live samples, put in slots by when they were allocated.
struct ages {
  std::array<double, age_slots> bytes{};
  std::array<std::uint64_t, age_slots> samples{};
  std::vector<std::pair<std::uint64_t, double>> blocks;  ///< when, bytes
};

struct suspicion {
  bool is_growing = false;      ///< blocks stay from nearly every part of the time watched, the last one too
  double bytes_per_second = 0;  ///< that stay, over the second half
  double overdue_bytes = 0;     ///< live for longer than nearly all freed blocks of this site ever were
};

/// The first slot is left out: what a program sets up at its start and keeps is no leak.
suspicion judge(const ages& a, double usual_life, std::uint64_t now_ns, std::uint64_t span_ns) {
  suspicion result;
  std::size_t filled = 0, last_filled = 0;
  for (std::size_t i = 1; i < age_slots; ++i)
    if (a.samples[i] > 0) {
      ++filled;
      last_filled = i;
    }
  // Three quarters of 23 slots; sampling leaves gaps, and blocks of any program that runs are young.
  result.is_growing = filled >= 17 && last_filled >= age_slots - 3;
  double late = 0;
  for (std::size_t i = age_slots / 2; i < age_slots; ++i) late += a.bytes[i];
  if (span_ns > 0) result.bytes_per_second = late / (static_cast<double>(span_ns) / 2e9);
  for (const auto& [at, bytes] : a.blocks)
    if (static_cast<double>(now_ns - std::min(at, now_ns)) / 1e9 > usual_life) result.overdue_bytes += bytes;
  return result;
}

}  // namespace

std::string sites_view(watched_process& process, const stack_question& question) {
  const auto seen = process.now();
  std::vector<std::pair<measured, stack_figures>> all;
  for (stack_figures& s : process.stacks()) all.emplace_back(measure(s, question), std::move(s));
  // With a baseline: those that grew most first, then those that shrank least.
  const auto order = [&](const auto& e) { return question.since ? e.first.grown : e.first.value; };
  const std::size_t shown = std::min(question.most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), all.end(),
                    [&](const auto& a, const auto& b) { return order(a) > order(b); });
  double left_out = 0;
  for (std::size_t i = shown; i < all.size(); ++i) left_out += all[i].first.value;
  place_table places(process.places());
  json rows = json::array();
  for (std::size_t i = 0; i < shown; ++i) {
    json row = stack_part(all[i].second, *seen, process, places);
    row["value"] = std::round(all[i].first.value);
    row["grown"] = question.since ? json(std::round(all[i].first.grown)) : json(nullptr);
    rows.push_back(std::move(row));
  }
  const json result = {{"at", seen->unix_seconds(seen->figures.at_ns)},
                       {"left_out", {{"sites", all.size() - shown}, {"value", std::round(left_out)}}},
                       {"places", places.rows()},
                       {"sites", rows}};
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string leaks_view(watched_process& process, std::size_t most) {
  const auto seen = process.now();
  const moment& m = *seen;
  const std::uint64_t now = m.figures.at_ns;
  const std::uint64_t begin =
      std::min(std::max(m.figures.process.counting_since_ns, m.figures.process.started_ns), now);
  const std::uint64_t span = now - begin;

  std::unordered_map<trace::reference, ages> of_site;
  for (const trace::sample_figures& sample : process.live_samples()) {
    ages& a = of_site[sample.at_stack];
    const std::uint64_t since = std::clamp(sample.at_ns, begin, now) - begin;
    const auto slot = std::min<std::size_t>(
        age_slots - 1,
        static_cast<std::size_t>(static_cast<double>(since) / static_cast<double>(span + 1) * age_slots));
    a.bytes[slot] += static_cast<double>(sample.bytes_for);
    ++a.samples[slot];
    a.blocks.emplace_back(sample.at_ns, static_cast<double>(sample.bytes_for));
  }

  struct candidate {
    stack_figures s;
    suspicion found;
    const ages* a;
  };
  std::vector<candidate> growing;
  std::size_t looked_at = 0;
  for (stack_figures& s : process.stacks()) {
    const auto found = of_site.find(s.id);
    if (found == of_site.end()) continue;
    ++looked_at;
    const suspicion judged = judge(found->second, usual_life_seconds(s), now, span);
    if (judged.is_growing) growing.push_back({std::move(s), judged, &found->second});
  }
  std::sort(growing.begin(), growing.end(),
            [](const candidate& a, const candidate& b) { return a.found.bytes_per_second > b.found.bytes_per_second; });

  place_table places(process.places());
  json rows = json::array();
  for (std::size_t i = 0; i < std::min(most, growing.size()); ++i) {
    const candidate& c = growing[i];
    json row = stack_part(c.s, m, process, places);
    row["bytes_per_second"] = std::round(c.found.bytes_per_second);
    row["overdue_bytes"] = std::round(c.found.overdue_bytes);
    row["usual_life"] = usual_life_seconds(c.s);
    row["live_by_time"] = c.a->bytes;
    rows.push_back(std::move(row));
  }
  const json result = {{"at", m.unix_seconds(now)},
                       {"begin", m.unix_seconds(begin)},
                       {"slots", age_slots},
                       {"sites_with_live_samples", looked_at},
                       {"left_out", growing.size() - rows.size()},
                       {"places", places.rows()},
                       {"sites", rows}};
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace heapwright::tool
