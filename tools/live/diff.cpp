// Two segments side by side: of two versions of a program, or two runs of one, as a rule ended. Addresses differ from run to run, so call sites are the same if
// their functions have the same names, from the outermost to the innermost.
//
// A condition is FIGURE>LIMIT: peak>+5%, live>+10MiB (by how much the second may be above the first), peak>200MiB (how much it may be at all).
#include "diff.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "comparison.hpp"
#include "failure.hpp"
#include "places.hpp"
#include "printable.hpp"
#include "segment_reader.hpp"
#include "stack_measure.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

struct figure {
  const char* name;
  double (*of)(const trace::snapshot&);
  std::string (*show)(double);
};

double live_bytes(const trace::snapshot& s) {
  const trace::class_figures total = s.total();
  return static_cast<double>(static_cast<std::int64_t>(total.allocated_bytes - total.freed_bytes));
}

constexpr figure figures[] = {
    {"peak", [](const trace::snapshot& s) { return static_cast<double>(s.process.peak); }, show_bytes},
    {"live", live_bytes, show_bytes},
    {"allocated", [](const trace::snapshot& s) { return static_cast<double>(s.total().allocated_bytes); }, show_bytes},
    {"allocations", [](const trace::snapshot& s) { return static_cast<double>(s.total().allocations); }, show_count},
};

struct condition {
  const figure* of;
  double limit;
  bool is_change, is_relative;
};

std::optional<double> unit_of(std::string_view name) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1}, {"B", 1}, {"%", 0.01}, {"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024 * 1024 * 1024}};
  for (const auto& [unit, factor] : units)
    if (name == unit) return factor;
  return std::nullopt;
}

condition parsed(const std::string& text) {
  const auto wrong = [&] {
    return failure(
        exit_code::bad_input,
        fmt::format("{}: a condition is FIGURE>LIMIT, as peak>+5%, live>+10MiB or allocations>1000; figures are "
                    "peak, live, allocated and allocations",
                    text));
  };
  const auto sign = text.find('>');
  if (sign == std::string::npos) throw wrong();
  const std::string name = text.substr(0, sign);
  const auto* const of =
      std::find_if(std::begin(figures), std::end(figures), [&](const figure& f) { return f.name == name; });
  std::string_view limit = std::string_view(text).substr(sign + 1);
  const bool is_change = limit.starts_with('+');
  if (is_change) limit.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), value);
  const std::string_view unit = limit.substr(static_cast<std::size_t>(end - limit.data()));
  const auto factor = unit_of(unit);
  const bool is_relative = unit == "%";
  if (of == std::end(figures) || error != std::errc() || !factor || value < 0 || (is_relative && !is_change))
    throw wrong();
  return {of, value * *factor, is_change, is_relative};
}

struct call_site {
  double live = 0;    ///< bytes
  std::string shown;  ///< the program's own function with its line, and its callers
};

struct watched_run {
  trace::snapshot figures;
  std::map<std::string, call_site> sites;  ///< by the names of the functions, from the program's own outwards
};

constexpr std::size_t shown_callers = 3;

/// The name of a site, and what is shown of it.
std::pair<std::string, std::string> named(const trace::stack_figures& stack, const trace::snapshot& of_run,
                                          places_book& book) {
  const auto places = places_of(stack, of_run, book);
  if (places.empty()) return {"(unknown)", "(unknown)"};
  const std::size_t site = site_in(places, book);
  std::string name = stack.is_cut ? "(cut)" : "", shown;
  for (std::size_t i = site; i < places.size(); ++i) {
    const place p = book[places[i]];
    name += ';' + p.function;
    if (i - site > shown_callers) continue;
    if (i > site) shown += "  <  ";
    shown += printable(p.function);
    if (i == site && !p.file.empty())
      shown += printable(fmt::format("  {}:{}", p.file.substr(p.file.rfind('/') + 1), p.line));
  }
  return {name, shown};
}

watched_run read_run(const std::string& path) {
  try {
    const trace::segment_reader reader(path);
    watched_run run{reader.read(), {}};
    places_book book;
    for (const trace::stack_figures& stack : reader.stacks()) {
      if (stack.live_bytes() == 0) continue;
      auto [name, shown] = named(stack, run.figures, book);
      call_site& site = run.sites[name];
      site.live += static_cast<double>(stack.live_bytes());
      site.shown = std::move(shown);
    }
    return run;
  } catch (const trace::bad_segment& trouble) {
    throw failure(exit_code::bad_input, trouble.what());
  }
}

std::string signed_text(double by, std::string (*show)(double)) { return (by < 0 ? "-" : "+") + show(std::abs(by)); }

void print_sites(const watched_run& before, const watched_run& after, unsigned most) {
  std::map<std::string, call_site> grown = after.sites;
  for (const auto& [name, site] : before.sites) {
    call_site& g = grown[name];
    g.live -= site.live;
    if (g.shown.empty()) g.shown = site.shown;
  }
  std::vector<std::pair<double, std::string>> sites;
  for (const auto& [name, site] : grown)
    if (site.live != 0) sites.emplace_back(site.live, site.shown);
  std::sort(sites.begin(), sites.end(),
            [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  if (sites.empty()) return;
  answer("\nlive bytes by call site, as sampled\n");
  for (std::size_t i = 0; i < std::min<std::size_t>(sites.size(), most); ++i)
    answer("{:>12}  {}\n", signed_text(sites[i].first, show_bytes), sites[i].second);
  if (sites.size() > most) answer("{:>12}  {} more\n", "", sites.size() - most);
}

bool holds(const condition& c, double before, double after) {
  const double by = after - before;
  if (!c.is_change) return after > c.limit;
  return c.is_relative ? by > c.limit * before : by > c.limit;
}

}  // namespace

int diff(const diff_options& options) {
  std::vector<condition> conditions;
  for (const std::string& text : options.fail_if) conditions.push_back(parsed(text));
  const watched_run before = read_run(options.before), after = read_run(options.after);
  answer("{:<12}{:>14}{:>14}{:>14}\n", "", "before", "after", "change");
  for (const figure& f : figures) {
    const double a = f.of(before.figures), b = f.of(after.figures);
    const std::string relative = a > 0 ? fmt::format("{:+.1f} %", (b - a) / a * 100) : std::string();
    answer("{:<12}{:>14}{:>14}{:>14}  {}\n", f.name, f.show(a), f.show(b), signed_text(b - a, f.show), relative);
  }
  print_sites(before, after, options.sites);
  int result = 0;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (!holds(conditions[i], conditions[i].of->of(before.figures), conditions[i].of->of(after.figures))) continue;
    finish_answers();
    tell("heapwright: {}\n", options.fail_if[i]);
    result = exit_code::judged_no;
  }
  return result;
}

}  // namespace heapwright::tool
