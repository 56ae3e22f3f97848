// Describing the machine, showing quantities, and summing up a row: what all views of a comparison share.
#include "comparison.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

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

std::string show_seconds(double value) {
  if (value >= 100) return fmt::format("{:.0f} s", value);
  if (value >= 1) return fmt::format("{:.2f} s", value);
  return value >= 0.1 ? fmt::format("{:.0f} ms", value * 1e3) : fmt::format("{:.1f} ms", value * 1e3);
}

std::string show_bytes(double value) {
  constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  for (value /= 1024; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 100 && unit > 0 ? 1 : 0, units[unit]);
}

std::string show_count(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
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

namespace {

/// "12-15 %", of 0.12 and 0.15.
std::string percents(double low, double high) {
  const double from = std::round(low * 100), to = std::round(high * 100);
  if (from == to) return fmt::format("{:.0f} %", to);
  return from < 1 ? fmt::format("up to {:.0f} %", to) : fmt::format("{:.0f}-{:.0f} %", from, to);
}

/// "12-15 % less memory", and the word between that and the name of the baseline: "than".
struct amount {
  std::string text;
  const char* preposition;
};

amount amount_of(const ratio_estimate& r, ratio_verdict said, const char* quantity) {
  if (said == ratio_verdict::same) return {fmt::format("the same {}", quantity), "as"};
  if (said == ratio_verdict::less)
    return {fmt::format("{} less {}", percents(1 - r.high, 1 - r.low), quantity), "than"};
  if (r.low < 2) return {fmt::format("{} more {}", percents(r.low - 1, r.high - 1), quantity), "than"};
  const auto factor = [&](double v) { return fmt::format("{:.{}f}", v, r.high < 10 ? 1 : 0); };
  const std::string from = factor(r.low), to = factor(r.high);
  return {fmt::format("{} times the {}", from == to ? to : from + "-" + to, quantity), "of"};
}

std::string doubt(const ratio_estimate& r, double tolerance, const char* quantity) {
  const auto enough = r.rounds_to_decide(tolerance, most_rounds);
  return fmt::format("its {} is unclear, {} {} rounds would tell", quantity, enough ? "about" : "more than",
                     enough.value_or(most_rounds));
}

}  // namespace

std::string verdict_on(const comparison& all, const comparison_row& row) {
  std::vector<std::string> takes, unclear;
  const char* preposition = nullptr;
  for (const auto& [key, quantity] : {std::pair{"peak_rss_bytes", "memory"}, std::pair{"wall_seconds", "time"}}) {
    const auto found = summarise(all, row, *std::ranges::find(metrics, std::string_view(key), &metric::key));
    if (!found || !found->to_baseline) continue;
    const ratio_estimate& r = *found->to_baseline;
    const ratio_verdict said = r.judge(all.tolerance);
    if (said == ratio_verdict::unclear) {
      unclear.push_back(doubt(r, all.tolerance, quantity));
      continue;
    }
    amount taken = amount_of(r, said, quantity);
    takes.push_back(std::move(taken.text));
    preposition = taken.preposition;
  }
  if (takes.empty() && unclear.empty()) return {};
  std::string text = row.who.name;
  if (!takes.empty())
    text += fmt::format(" takes {} {} {}", fmt::join(takes, " and "), preposition, all.base().who.name);
  if (!unclear.empty()) text += fmt::format("{}{}", takes.empty() ? ": " : "; ", fmt::join(unclear, "; "));
  return text;
}

}  // namespace heapwright::tool
