// A comparison as text: its verdicts, then a table with two lines to an allocator, the medians and
// below them the ratios to the baseline.
//
// On a terminal that is narrower than this table each figure has a line of its own, below the name
// of its allocator, with the ratio behind it.
#include <algorithm>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "comparison.hpp"

namespace heapwright::tool {
namespace {

/// A metric, and what its column needs.
struct column {
  metric property;
  std::size_t width;
  double best;  ///< of the medians
};

/// More would be too wide for a terminal: what a driver has printed follows below.
constexpr std::size_t in_a_line = 5;

struct palette {
  const char* bold = "";
  const char* best = "";
  const char* dim = "";
  const char* bad = "";
  const char* end = "";
};

std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1) + '\n'; }

constexpr std::string_view gap = "  ";

/// Never without a gap behind it.
std::string cell(const std::string& text, const column& in) { return fmt::format("{:<{}}{}", text, in.width, gap); }

std::string ratio_text(const ratio_estimate& r, double tolerance) {
  const ratio_verdict said = r.judge(tolerance);
  const std::string word = said == ratio_verdict::same      ? "same"
                           : said == ratio_verdict::unclear ? "unclear"
                                                            : shown_bound(r.ratio);
  return fmt::format("{} ({}-{})", word, shown_bound(r.low), shown_bound(r.high));
}

std::vector<column> columns_of(const comparison& all) {
  std::vector<column> columns;
  for (metric& property : metrics_of(all)) {
    constexpr std::size_t usual_width = 19;  // what a ratio with its interval needs, as a rule
    const bool higher = property.higher_is_better;
    const auto infinity = std::numeric_limits<double>::infinity();
    column one{std::move(property), usual_width, higher ? -infinity : infinity};
    one.width = std::max(one.width, one.property.title.size());
    for (const comparison_row& row : all.rows) {
      const auto found = summarise(all, row, one.property);
      if (!found) continue;
      one.best = higher ? std::max(one.best, found->median) : std::min(one.best, found->median);
      one.width = std::max(one.width, one.property.show(found->median).size());
      if (found->to_baseline) one.width = std::max(one.width, ratio_text(*found->to_baseline, all.tolerance).size());
    }
    columns.push_back(std::move(one));
  }
  return columns;
}

std::vector<std::string> value_and_ratio_lines(const comparison& all, const comparison_row& row, const palette& p,
                                               std::size_t name_width, std::span<const column> columns) {
  std::string values = fmt::format("{}{:<{}}{}", p.bold, row.who.name, name_width, p.end);
  std::string ratios = fmt::format("{:<{}}", "", name_width);
  for (const column& one : columns) {
    const auto found = summarise(all, row, one.property);
    const bool leads = found->median == one.best;
    values +=
        fmt::format("{}{}{}", leads ? p.best : "", cell(one.property.show(found->median), one), leads ? p.end : "");
    ratios += cell(found->to_baseline ? ratio_text(*found->to_baseline, all.tolerance) : "", one);
  }
  std::vector<std::string> lines{values};
  if (ratios.find_first_not_of(' ') != std::string::npos) lines.push_back(p.dim + ratios + p.end);
  return lines;
}

/// Titles, and the rows below them. `is_first` of several such tables: with all that is no figure.
std::string lines_of(const comparison& all, std::span<const column> columns, const palette& p, std::size_t name_width,
                     bool is_first) {
  std::string text = fmt::format("{:<{}}", "", name_width);
  for (const column& one : columns) text += cell(one.property.title, one);
  text = trimmed(text);
  for (const comparison_row& row : all.rows) {
    if (!row.failure.empty()) {
      if (is_first)
        text += fmt::format("{}{:<{}}{}{}{}{}\n", p.bold, row.who.name, name_width, p.end, p.bad, row.failure, p.end);
      continue;
    }
    for (const std::string& line : value_and_ratio_lines(all, row, p, name_width, columns)) text += trimmed(line);
    if (!is_first) continue;
    if (!row.remark.empty()) text += fmt::format("{:<{}}{}\n", "", name_width, row.remark);
    if (!row.difference.empty()) text += fmt::format("{:<{}}{}{}{}\n", "", name_width, p.bad, row.difference, p.end);
  }
  return text;
}

/// The terminal columns that the longest line of the wide table takes, without the gap at its end.
std::size_t width_of(std::span<const column> columns, std::size_t name_width) {
  std::size_t widest = 0;
  for (std::size_t from = 0; from < columns.size(); from += in_a_line) {
    std::size_t width = name_width;
    for (const column& one : columns.subspan(from, std::min(in_a_line, columns.size() - from)))
      width += cell("", one).size();
    widest = std::max(widest, width);
  }
  return widest - gap.size();
}

/// A figure to a line.
std::string lines_below_name(const comparison& all, const comparison_row& row, std::span<const column> columns,
                             const palette& p) {
  std::size_t title_width = 0, value_width = 0;
  for (const column& one : columns) {
    title_width = std::max(title_width, one.property.title.size());
    value_width = std::max(value_width, one.property.show(summarise(all, row, one.property)->median).size());
  }
  std::string text;
  for (const column& one : columns) {
    const auto found = summarise(all, row, one.property);
    const bool leads = found->median == one.best;
    const std::string value = fmt::format("{:<{}}", one.property.show(found->median), value_width);
    const std::string ratio = found->to_baseline ? ratio_text(*found->to_baseline, all.tolerance) : "";
    text += trimmed(fmt::format("  {:<{}}  {}{}{}{}", one.property.title, title_width, leads ? p.best : "", value,
                                leads ? p.end : "", ratio.empty() ? "" : fmt::format("  {}{}{}", p.dim, ratio, p.end)));
  }
  return text;
}

std::string narrow_table(const comparison& all, std::span<const column> columns, const palette& p) {
  std::string text;
  for (const comparison_row& row : all.rows) {
    text += fmt::format("{}{}{}\n", p.bold, row.who.name, p.end);
    if (!row.failure.empty()) {
      text += fmt::format("  {}{}{}\n", p.bad, row.failure, p.end);
      continue;
    }
    text += lines_below_name(all, row, columns, p);
    if (!row.remark.empty()) text += fmt::format("  {}\n", row.remark);
    if (!row.difference.empty()) text += fmt::format("  {}{}{}\n", p.bad, row.difference, p.end);
  }
  return text;
}

/// For any number of columns.
std::string wide_table(const comparison& all, std::span<const column> columns, const palette& p,
                       std::size_t name_width) {
  std::string text;
  for (std::size_t from = 0; from < columns.size(); from += in_a_line) {
    if (from > 0) text += '\n';
    text += lines_of(all, columns.subspan(from, std::min(in_a_line, columns.size() - from)), p, name_width, from == 0);
  }
  return text;
}

/// Whole sentences, below the table.
std::string findings(const comparison& all) {
  std::string text;
  for (const comparison_row& row : all.rows)
    for (const row_finding& f : row.findings) text += fmt::format("{}, {}: {}\n", row.who.name, f.when, f.what.line());
  return text.empty() ? text : '\n' + text;
}

/// One sentence, or a list of them.
std::string verdicts(const comparison& all) {
  std::vector<std::string> said;
  for (const comparison_row& row : all.rows)
    if (std::string one = verdict_on(all, row); !one.empty()) said.push_back(std::move(one));
  if (said.empty()) return {};
  if (said.size() == 1) return fmt::format("On this program, {}.\n\n", said.front());
  return fmt::format("On this program:\n  {}\n\n", fmt::join(said, "\n  "));
}

}  // namespace

std::string table_view(const comparison& all, bool colour, unsigned terminal_columns) {
  const palette p = colour ? palette{"\033[1m", "\033[1;32m", "\033[2m", "\033[31m", "\033[0m"} : palette{};
  std::size_t name_width = 12;
  for (const comparison_row& row : all.rows) name_width = std::max(name_width, row.who.name.size() + 2);
  std::string text = verdicts(all);
  const std::vector<column> columns = columns_of(all);
  const bool is_narrow = terminal_columns != 0 && terminal_columns < width_of(columns, name_width);
  text += is_narrow ? narrow_table(all, columns, p) : wide_table(all, columns, p, name_width);
  const bool has_ratio = std::ranges::any_of(
      all.rows, [&](const comparison_row& row) { return row.failure.empty() && &row != &all.base(); });
  if (all.rounds < 2)
    text += fmt::format("\nOne round: no ratio to {}, which needs two.\n", all.base().who.name);
  else if (!has_ratio)
    text += fmt::format("\nMedians of {} rounds.\n", all.rounds);
  else
    text += fmt::format(
        "\nMedians of {} rounds; {} them the ratio to {}, in brackets its 95 % confidence interval.\n"
        "same: the interval is within {:g} % of 1. unclear: it holds 1 and is wider; more rounds make it narrower.\n",
        all.rounds, is_narrow ? "behind" : "below", all.base().who.name, all.tolerance * 100);
  text += findings(all);
  for (const std::string& note : all.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

}  // namespace heapwright::tool
