// Two runs side by side: of two versions of a program, or two runs of one, as a rule ended.
// Addresses differ from run to run, so call sites are the same if their functions have the same
// names, from the outermost to the innermost.
//
// A condition is FIGURE>LIMIT: peak>+5%, live>+10MiB (by how much the second may be above the
// first), peak>200MiB (how much it may be at all).
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

#include "call_sites.hpp"
#include "failure.hpp"
#include "given_advice.hpp"
#include "output_file.hpp"
#include "places.hpp"
#include "printable.hpp"
#include "quantities.hpp"
#include "saved_run.hpp"
#include "segment_reader.hpp"
#include "snapshot_page.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

/// What one run says of a site; all are bytes.
struct site_figures {
  measured live, at_peak, allocated;
};

/// One figure of sites.
struct site_table {
  const char* title;
  measured site_figures::*value;
};
constexpr site_table live_table{"live bytes at the end", &site_figures::live};
constexpr site_table peak_table{"live bytes at the peak", &site_figures::at_peak};
constexpr site_table allocated_table{"allocated bytes", &site_figures::allocated};

/// Of all its processes.
struct watched_run {
  double peak = 0;  ///< the highest of one process
  double live = 0, allocated = 0, allocations = 0;
  std::size_t processes = 0;
  bool is_estimate = false;  ///< of what is exact otherwise
  std::uint64_t lost_samples = 0;
  double unseen = 0;  ///< what a sample of a site that was not seen at all may stand for, in bytes
  std::map<std::string, site_figures> sites;  ///< by the names of the functions, from the program's own outwards
  /// Of a site, which may have several lines: by what is shown of one, its function and line, and
  /// its callers.
  std::map<std::string, std::map<std::string, site_figures>> lines;
};

struct figure {
  const char* name;
  double watched_run::*value;
  std::string (*show)(double);
  const site_table& sites;  ///< that it is the sum of
  bool is_in_bytes = true;
};

constexpr figure figures[] = {
    {"peak", &watched_run::peak, show_bytes, peak_table},
    {"live", &watched_run::live, show_bytes, live_table},
    {"allocated", &watched_run::allocated, show_bytes, allocated_table},
    {"allocations", &watched_run::allocations, show_count, allocated_table, false},
};

struct condition {
  const figure* of;
  double limit;
  bool is_change, is_relative;
};

std::optional<double> unit_of(std::string_view name) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1}, {"B", 1}, {"%", 0.01}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (const auto& [unit, factor] : units)
    if (name == unit) return factor;
  return std::nullopt;
}

condition parsed(const std::string& text) {
  const auto wrong = [&] {
    return failure(
        exit_code::bad_input,
        fmt::format("{}: a condition is FIGURE>LIMIT, as peak>+5%, live>+10MiB or allocations>1000; figures are "
                    "peak, live, allocated and allocations; a limit in % has a + before it; bytes "
                    "may have B, KiB, MiB, GiB or TiB",
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
  // A double cannot tell 2^64 - 1 from 2^64.
  long double value = 0;
  constexpr long double beyond_all = 0x1p64L;  // no figure has more than 64 bits
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), value);
  const std::string_view unit = limit.substr(static_cast<std::size_t>(end - limit.data()));
  const auto factor = unit_of(unit);
  const bool is_relative = unit == "%";
  const bool is_count = of != std::end(figures) && !of->is_in_bytes;
  const bool has_wrong_unit = is_relative ? !is_change : is_count && !unit.empty();
  const bool is_number = error == std::errc() || error == std::errc::result_out_of_range;
  if (of == std::end(figures) || !is_number || std::isnan(value) || !factor || value < 0 || has_wrong_unit)
    throw wrong();
  if (error != std::errc() || value * *factor >= beyond_all)
    throw failure(
        exit_code::bad_input,
        fmt::format("{}: the limit is beyond all figures that a run can have; say a number below 2^64", text));
  return {of, static_cast<double>(value * *factor), is_change, is_relative};
}

constexpr std::size_t shown_callers = 3;

/// The name of a site, and what is shown of it.
std::pair<std::string, std::string> named(const segment::stack_figures& stack, const segment::snapshot& of_run,
                                          places_book& book) {
  const auto places = book.without_interpreter(places_of(stack, of_run, book));
  if (places.empty()) return {"(unknown)", "(unknown)"};
  const std::size_t site = book.site_in(places);
  std::string name = stack.is_cut ? "(cut)" : "", shown, last;
  std::size_t callers = 0;
  for (std::size_t i = site; i < places.size(); ++i) {
    const place p = book[places[i]];
    name += ';' + p.function;
    if (i == site) shown = text_of(p);
    // What calls main says nothing.
    if (i > site && p.function != last && last != "main" && callers++ < shown_callers)
      shown += "  <  " + printable(short_name(p.function));
    if (last != "main") last = p.function;
  }
  return {name, shown};
}

void add_process(watched_run& run, const segment::segment_reader& reader, const function_patterns& wrappers) {
  const segment::snapshot seen = reader.read();
  const segment::class_figures total = seen.own_total();
  run.peak = std::max(run.peak, static_cast<double>(seen.process.peak));
  run.live += static_cast<double>(static_cast<std::int64_t>(total.allocated_bytes - total.freed_bytes));
  run.allocated += static_cast<double>(total.allocated_bytes);
  run.allocations += static_cast<double>(total.allocations);
  ++run.processes;
  run.is_estimate |= seen.process.is_of_samples && !seen.process.knows_all_stacks();
  run.lost_samples += seen.process.lost_samples;
  run.unseen = std::max(run.unseen, unseen_of_unknown(seen.process));
  places_book book(wrappers);
  const auto by = [](stack_value value) {
    stack_question question;
    question.value = value;
    return question;
  };
  for (const segment::stack_figures& stack : reader.own_stacks()) {
    const auto [name, shown] = named(stack, seen, book);
    for (site_figures* f : {&run.sites[name], &run.lines[name][shown]}) {
      f->live += measure(stack, by(stack_value::live));
      f->at_peak += measure(stack, by(stack_value::peak));
      f->allocated += measure(stack, by(stack_value::allocated));
    }
  }
}

watched_run read_run(const std::string& path, const function_patterns& wrappers) {
  const opened_run opened(path);
  watched_run run;
  try {
    for (const saved_process& p : opened.processes()) add_process(run, segment::segment_reader(p.segment), wrappers);
  } catch (const segment::bad_segment& trouble) {
    throw failure(exit_code::bad_input, trouble.what());
  }
  return run;
}

std::string signed_text(double by, std::string (*show)(double)) { return (by < 0 ? "-" : "+") + show(std::abs(by)); }

struct changed_site {
  std::string shown;
  measured before, after;
  bool has_lost_samples = false;  ///< perhaps: in one of the runs some were lost

  [[nodiscard]] double change() const noexcept { return after.value - before.value; }
  [[nodiscard]] double error() const noexcept { return std::hypot(error_of(before), error_of(after)); }
  /// Whether nothing may have changed.
  [[nodiscard]] bool is_unknown() const noexcept { return error() >= std::abs(change()); }
};

/// What is shown of the line of a site that has most of a figure, and how much that is.
std::pair<std::string, double> largest_line(const watched_run& run, const std::string& name, const site_table& table) {
  const auto value = [&](const auto& line) { return (line.second.*table.value).value; };
  const auto largest = std::ranges::max_element(run.lines.at(name), {}, value);
  return {largest->first, value(*largest)};
}

std::vector<changed_site> changed_sites(const watched_run& before, const watched_run& after, const site_table& table) {
  std::map<std::string, changed_site> all;
  for (const auto& [name, site] : before.sites)
    all[name] = {largest_line(before, name, table).first, site.*table.value, {.unseen = after.unseen}};
  for (const auto& [name, site] : after.sites) {
    const auto [entry, is_new] = all.try_emplace(name);
    changed_site& changed = entry->second;
    if (is_new) changed.before.unseen = before.unseen;
    // The line of the newer program, unless that has nothing there: which one would say nothing.
    if (auto [shown, value] = largest_line(after, name, table); is_new || value > 0) changed.shown = std::move(shown);
    changed.after = site.*table.value;
  }
  std::vector<changed_site> sites;
  for (auto& [name, site] : all) {
    site.has_lost_samples = before.lost_samples + after.lost_samples > 0;
    if (site.change() != 0) sites.push_back(std::move(site));
  }
  std::ranges::stable_sort(sites, std::ranges::greater{},
                           [](const changed_site& s) { return std::pair(!s.is_unknown(), std::abs(s.change())); });
  return sites;
}

std::string site_line(const changed_site& s) {
  const double error = s.error();
  return fmt::format("{:>12}{:>12}{:>13}{:>10}  {}", show_bytes(s.before.value), show_bytes(s.after.value),
                     s.is_unknown() ? "unknown" : signed_text(s.change(), show_bytes),
                     error > 0            ? "±" + show_bytes(error)
                     : s.has_lost_samples ? "-"
                                          : "exact",
                     s.shown);
}

void print_sites(const watched_run& before, const watched_run& after, const site_table& table, unsigned most) {
  const auto sites = changed_sites(before, after, table);
  if (sites.empty() || most == 0) return;
  answer("\n{} by call site\n{:>12}{:>12}{:>13}{:>10}\n", table.title, "before", "after", "change", "95 %");
  for (std::size_t i = 0; i < std::min<std::size_t>(sites.size(), most); ++i) answer("{}\n", site_line(sites[i]));
  if (sites.size() > most) answer("{:>12}  {} more\n", "", sites.size() - most);
}

bool holds(const condition& c, double before, double after) {
  const double by = after - before;
  if (!c.is_change) return after > c.limit;
  return c.is_relative ? by > c.limit * before : by > c.limit;
}

/// To stderr: the condition, both values, and the sites that made the difference.
void tell_failed(const std::string& text, const figure& of, const watched_run& before, const watched_run& after) {
  const double was = before.*of.value, is = after.*of.value;
  tell("heapwright: {}: {} was {}, is {} ({})\n", text, of.name, of.show(was), of.show(is),
       signed_text(is - was, of.show));
  const site_table& table = of.sites;
  const auto sites = changed_sites(before, after, table);
  constexpr std::size_t most = 5;
  std::size_t told = 0;
  for (const changed_site& s : sites) {
    if (s.change() < 0 || told == most) continue;
    if (told++ == 0) tell("  {} by call site, before, after, change:\n", table.title);
    tell("{}\n", site_line(s));
  }
}

/// The page of the second run, which begins with what is more and less than in the first.
void write_page(const diff_options& options) {
  const opened_run after(options.after);
  watched_family family(after, options.wrappers);
  family.compare_with(std::make_shared<const other_run>(options.before, options.wrappers));
  const std::string page = snapshot_page({family, advice_view("")}, {.view = "where?value=peak&since=other"});
  family.stop();
  output_file file(options.html);
  file.write(page);
  file.finish();
}

}  // namespace

int diff(const diff_options& options) {
  check_is_a_file("--html", options.html);
  check_replaces_none("--html", options.html, {options.before, options.after});
  check_writable(options.html);
  std::vector<condition> conditions;
  for (const std::string& text : options.fail_if) conditions.push_back(parsed(text));
  const watched_run before = read_run(options.before, options.wrappers);
  const watched_run after = read_run(options.after, options.wrappers);
  if (!conditions.empty() && (before.is_estimate || after.is_estimate))
    throw failure(exit_code::bad_input,
                  fmt::format("--fail-if: the figures of {} are estimates, as live --estimate has them; they would "
                              "fail by chance",
                              before.is_estimate ? options.before : options.after));
  answer("{:<12}{:>14}{:>14}{:>14}\n", "", "before", "after", "change");
  for (const figure& f : figures) {
    const double a = before.*f.value, b = after.*f.value;
    const std::string relative = a > 0 ? fmt::format("{:+.1f} %", (b - a) / a * 100) : std::string();
    answer("{:<12}{:>14}{:>14}{:>14}  {}\n", f.name, f.show(a), f.show(b), signed_text(b - a, f.show), relative);
  }
  if (before.processes > 1 || after.processes > 1)
    answer("of {} and {} process{}; the peak is the highest of one of them\n", before.processes, after.processes,
           after.processes == 1 ? "" : "es");
  if (before.is_estimate || after.is_estimate)
    answer("{}: live --estimate counts samples alone, so these figures are estimates\n",
           before.is_estimate && after.is_estimate ? "both"
           : before.is_estimate                    ? "before"
                                                   : "after");
  for (const auto& [name, run] : {std::pair("before", &before), std::pair("after", &after)})
    if (run->lost_samples > 0)
      answer("{}: {} samples were lost for want of room: sites have less than there is\n", name,
             show_count(static_cast<double>(run->lost_samples)));
  print_sites(before, after, live_table, options.sites);
  print_sites(before, after, peak_table, options.sites);
  print_sites(before, after, allocated_table, options.sites);
  finish_answers();
  if (!options.html.empty()) write_page(options);
  int result = 0;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const figure& of = *conditions[i].of;
    if (!holds(conditions[i], before.*of.value, after.*of.value)) continue;
    tell_failed(options.fail_if[i], of, before, after);
    result = exit_code::judged_no;
  }
  return result;
}

}  // namespace heapwright::tool
