// A comparison as text: its verdicts, then a table with two lines to an allocator, the medians and below them the ratios to
// the baseline.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "comparison.hpp"

namespace heapwright::tool {
namespace {

constexpr unsigned cell_width = 21;

struct palette {
  const char* bold = "";
  const char* best = "";
  const char* dim = "";
  const char* bad = "";
  const char* end = "";
};

std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1) + '\n'; }

/// Never without a gap behind it.
std::string cell(const std::string& text) { return fmt::format("{:<{}}  ", text, cell_width - 2); }

std::string ratio_text(const ratio_estimate& r, double tolerance) {
  const auto bound = [](double v) { return fmt::format("{:.{}f}", v, v < 10 ? 2 : v < 100 ? 1 : 0); };
  const ratio_verdict said = r.judge(tolerance);
  const std::string word = said == ratio_verdict::same      ? "same"
                           : said == ratio_verdict::unclear ? "unclear"
                                                            : bound(r.ratio);
  return fmt::format("{} ({}-{})", word, bound(r.low), bound(r.high));
}

std::vector<std::string> value_and_ratio_lines(const comparison& all, const comparison_row& row, const palette& p,
                                               std::size_t name_width, const std::vector<double>& best) {
  std::string values = fmt::format("{}{:<{}}{}", p.bold, row.who.name, name_width, p.end);
  std::string ratios = fmt::format("{:<{}}", "", name_width);
  for (std::size_t i = 0; i < std::size(metrics); ++i) {
    const auto found = summarise(all, row, metrics[i]);
    const bool leads = found->median <= best[i];
    values += fmt::format("{}{}{}", leads ? p.best : "", cell(metrics[i].show(found->median)), leads ? p.end : "");
    ratios += cell(found->to_baseline ? ratio_text(*found->to_baseline, all.tolerance) : "");
  }
  std::vector<std::string> lines{values};
  if (ratios.find_first_not_of(' ') != std::string::npos) lines.push_back(p.dim + ratios + p.end);
  return lines;
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

std::string table_view(const comparison& all, bool colour) {
  const palette p = colour ? palette{"\033[1m", "\033[1;32m", "\033[2m", "\033[31m", "\033[0m"} : palette{};
  std::size_t name_width = 12;
  for (const comparison_row& row : all.rows) name_width = std::max(name_width, row.who.name.size() + 2);
  std::string text = verdicts(all) + fmt::format("{:<{}}", "", name_width);
  std::vector<double> best;
  for (const metric& property : metrics) {
    text += cell(property.title);
    double least = std::numeric_limits<double>::infinity();
    for (const comparison_row& row : all.rows)
      if (const auto found = summarise(all, row, property)) least = std::min(least, found->median);
    best.push_back(least);
  }
  text = trimmed(text);
  for (const comparison_row& row : all.rows) {
    if (!row.failure.empty()) {
      text += fmt::format("{}{:<{}}{}{}{}{}\n", p.bold, row.who.name, name_width, p.end, p.bad, row.failure, p.end);
      continue;
    }
    for (const std::string& line : value_and_ratio_lines(all, row, p, name_width, best)) text += trimmed(line);
    if (!row.remark.empty()) text += fmt::format("{:<{}}{}\n", "", name_width, row.remark);
    if (!row.difference.empty()) text += fmt::format("{:<{}}{}{}{}\n", "", name_width, p.bad, row.difference, p.end);
  }
  text += fmt::format(
      "\nMedians of {} rounds; below them the ratio to {}, in brackets its 95 % confidence interval.\n"
      "same: the interval is within {:g} % of 1. unclear: it holds 1 and is wider; more rounds make it narrower.\n",
      all.rounds, all.base().who.name, all.tolerance * 100);
  for (const std::string& note : all.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

}  // namespace heapwright::tool
