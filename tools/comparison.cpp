// Describing the machine and summing up a row: what all views of a comparison share.
#include "comparison.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "quantities.hpp"

namespace heapwright::tool {

machine_description machine_description::of_this_one() {
  utsname system{};
  uname(&system);
  std::string processor = system.machine;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    processor = line.substr(line.find(':') + 2);
    break;
  }
  return {processor, std::thread::hardware_concurrency(),
          static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)),
          fmt::format("{} {}", system.sysname, system.release), fmt::format("glibc {}", gnu_get_libc_version())};
}

std::string local_time() {
  const std::time_t t = std::time(nullptr);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", std::localtime(&t));
  return text;
}

std::vector<metric> metrics_of(const comparison& all) {
  const bool is_server = all.server.has_value();
  std::vector<metric> metrics = {
      {"wall_seconds", is_server ? "driver time" : "wall time", "time",
       [](const measurement& m) { return m.wall_seconds; }, show_seconds},
      {"cpu_seconds", "CPU time", "", [](const measurement& m) { return m.user_seconds + m.system_seconds; },
       show_seconds},
      {"peak_rss_bytes", "peak RSS", "memory", [](const measurement& m) { return static_cast<double>(m.peak_rss); },
       show_bytes},
  };
  if (is_server)
    metrics.push_back({"steady_rss_bytes", "steady RSS", "steady memory",
                       [](const measurement& m) { return static_cast<double>(m.steady_rss); }, show_bytes});
  else
    metrics.push_back({"end_rss_bytes", "RSS at end", "",
                       [](const measurement& m) { return static_cast<double>(m.end_rss); }, show_bytes});
  metrics.push_back({"page_faults", "page faults", "",
                     [](const measurement& m) { return static_cast<double>(m.minor_faults + m.major_faults); },
                     show_count});
  if (!is_server) return metrics;
  for (std::size_t i = 0; i < all.server->figures.size(); ++i) {
    const driver_figure& figure = all.server->figures[i];
    metrics.push_back({figure.name(), figure.name(), figure.name(),
                       [i](const measurement& m) { return m.driver_figures.at(i); }, show_number, true,
                       figure.higher_is_better()});
  }
  return metrics;
}

std::optional<summary> summarise(const comparison& all, const comparison_row& row, const metric& property) {
  if (!row.failure.empty() || row.rounds.empty()) return std::nullopt;
  const auto values = [&](const comparison_row& of) {
    std::vector<double> result;
    for (const measurement& m : of.rounds) result.push_back(property.value(m));
    return result;
  };
  const auto own = values(row);
  const bool is_baseline = &row == &all.base();
  return summary{median(own), is_baseline ? std::nullopt : paired_ratio(own, values(all.base()))};
}

std::vector<row_finding> findings_of(const run_result& ran, bool is_server) {
  std::vector<row_finding> all;
  const auto add = [&](std::optional<recipe_evidence> seen, const char* when) {
    if (!seen) return;
    seen->ends_by_itself = !is_server;
    for (recipe_finding& one : find_in(*seen))
      if (std::ranges::none_of(all, [&](const row_finding& f) { return f.what.rule == one.rule; }))
        all.push_back({when, std::move(one)});
  };
  add(ran.heap_at_end, is_server ? "when the driver has ended" : "at its end");
  add(ran.heap_at_peak, "at its peak");
  std::ranges::stable_sort(all, std::ranges::greater{}, [](const row_finding& f) { return f.what.bytes; });
  if (all.size() > most_findings) all.erase(all.begin() + most_findings, all.end());
  return all;
}

namespace {

/// "a, b and c".
std::string listed(std::vector<std::string> words) {
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : fmt::format("{} and {}", fmt::join(words, ", "), last);
}

/// "12-15 %", of 0.12 and 0.15.
std::string percents(double low, double high) {
  const double from = std::round(low * 100), to = std::round(high * 100);
  if (from == to) return fmt::format("{:.0f} %", to);
  return from < 1 ? fmt::format("up to {:.0f} %", to) : fmt::format("{:.0f}-{:.0f} %", from, to);
}

/// "2.0-2.5", of a ratio from which on factors are shown and no percentages; empty below that.
std::string factors(const ratio_estimate& r) {
  if (r.low < 2) return {};
  const auto factor = [&](double v) { return fmt::format("{:.{}f}", v, r.high < 10 ? 1 : 0); };
  const std::string from = factor(r.low), to = factor(r.high);
  return from == to ? to : from + "-" + to;
}

/// "12-15 % less memory", and the word between that and the name of the baseline: "than".
struct amount {
  std::string text;
  const char* preposition;
};

amount amount_of(const ratio_estimate& r, ratio_verdict said, const std::string& quantity) {
  if (said == ratio_verdict::same) return {fmt::format("the same {}", quantity), "as"};
  if (said == ratio_verdict::less)
    return {fmt::format("{} less {}", percents(1 - r.high, 1 - r.low), quantity), "than"};
  if (const std::string times = factors(r); !times.empty())
    return {fmt::format("{} times the {}", times, quantity), "of"};
  return {fmt::format("{} more {}", percents(r.low - 1, r.high - 1), quantity), "than"};
}

/// Of a figure that the driver prints, which a program does not take but has.
std::string level_of(const ratio_estimate& r, ratio_verdict said, const std::string& figure) {
  if (said == ratio_verdict::same) return fmt::format("its {} is the same", figure);
  if (said == ratio_verdict::less) return fmt::format("its {} is {} lower", figure, percents(1 - r.high, 1 - r.low));
  if (const std::string times = factors(r); !times.empty())
    return fmt::format("its {} is {} times as high", figure, times);
  return fmt::format("its {} is {} higher", figure, percents(r.low - 1, r.high - 1));
}

/// What these rounds do not tell of a row, and how many would.
class doubts {
 public:
  void add(const ratio_estimate& r, double tolerance, const std::string& quantity) {
    quantities_.push_back(quantity);
    const auto enough = r.rounds_to_decide(tolerance, most_rounds);
    can_be_told_ = can_be_told_ && enough;
    rounds_ = std::max(rounds_, enough.value_or(most_rounds));
  }

  /// Nothing, or one clause.
  [[nodiscard]] std::vector<std::string> clause() const {
    if (quantities_.empty()) return {};
    const bool is_one = quantities_.size() == 1;
    return {fmt::format("its {} {} unclear, {} {} rounds would tell{}", listed(quantities_), is_one ? "is" : "are",
                        can_be_told_ ? "about" : "more than", rounds_, is_one ? "" : " all")};
  }

 private:
  std::vector<std::string> quantities_;
  bool can_be_told_ = true;
  unsigned rounds_ = 0;  ///< for the one that needs most
};

}  // namespace

std::string verdict_on(const comparison& all, const comparison_row& row) {
  // Memory comes first, whatever the order of the columns.
  std::vector<metric> said_of = metrics_of(all);
  std::erase_if(said_of, [](const metric& m) { return m.noun.empty(); });
  std::ranges::stable_partition(said_of, [](const metric& m) { return m.show == show_bytes; });
  std::vector<std::string> takes, levels;
  doubts unclear;
  const char* preposition = nullptr;
  for (const metric& property : said_of) {
    const auto found = summarise(all, row, property);
    if (!found || !found->to_baseline) continue;
    const ratio_estimate& r = *found->to_baseline;
    const ratio_verdict said = r.judge(all.tolerance);
    if (said == ratio_verdict::unclear) {
      unclear.add(r, all.tolerance, property.noun);
    } else if (property.is_from_driver) {
      levels.push_back(level_of(r, said, property.noun));
    } else {
      amount taken = amount_of(r, said, property.noun);
      takes.push_back(std::move(taken.text));
      preposition = taken.preposition;
    }
  }
  std::vector<std::string> clauses = std::move(levels);
  for (std::string& clause : unclear.clause()) clauses.push_back(std::move(clause));
  if (takes.empty() && clauses.empty()) return {};
  const bool is_as_built = row.who.name == "as built";
  if (takes.empty()) {
    if (is_as_built)
      clauses.front().insert(0, "as built, ");
    else
      clauses.front().replace(0, std::string_view("its").size(), row.who.name + "'s");
    return fmt::format("{}", fmt::join(clauses, "; "));
  }
  clauses.insert(
      clauses.begin(),
      fmt::format("{} takes {} {} {}", is_as_built ? "as built, it" : row.who.name, listed(takes), preposition,
                  all.base().who.name == "as built" ? "the program as built" : all.base().who.name));
  return fmt::format("{}", fmt::join(clauses, "; "));
}

}  // namespace heapwright::tool
