#include "fit_report.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_page.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* verdict_names[] = {"fitted", "keep-default", "other-allocator"};

json or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

std::string command_of(const fit_report& all) { return shown_command(all.command); }

std::string show_change(double ratio) { return fmt::format("{:+.1f} %", (ratio - 1) * 100); }

/// The key of a figure in the JSON: without its unit.
std::string short_key(const metric& m) {
  for (const char* const unit : {"_seconds", "_bytes"})
    if (m.key.ends_with(unit)) return m.key.substr(0, m.key.size() - std::strlen(unit));
  return m.key;
}

/// The row that the verdict is about.
std::string row_of_answer(const fit_report& all) {
  if (all.answer.verdict == fit_verdict::other_allocator) return all.answer.malloc;
  return all.fitted ? fitted_row : "";
}

/// What the verdict calls a figure.
json counts_as(const std::optional<judged_figure>& figure) {
  if (!figure || (!figure->has_gained && !figure->is_harmed)) return nullptr;
  return figure->has_gained ? "gain" : "harm";
}

/// A row's ratios to the default's, of all figures.
json ratios_json(const comparison& proof, const std::string& name, fit_goal goal) {
  const auto row = std::ranges::find(proof.rows, name, [](const comparison_row& r) { return r.who.name; });
  if (row == proof.rows.end()) return nullptr;
  json result = json::object();
  for (const metric& m : metrics_of(proof)) {
    const auto found = summarise(proof, *row, m);
    if (!found || !found->to_baseline) continue;
    const ratio_estimate& r = *found->to_baseline;
    result[short_key(m)] = {{"ratio", r.ratio},
                            {"low", r.low},
                            {"high", r.high},
                            {"counts_as", counts_as(judge_figure(proof, name, m, goal))}};
  }
  return result;
}

json comparison_json(const comparison& one, fit_goal goal) {
  json result = {{"command", one.command}, {"rounds", one.rounds}};
  json& titles = result["figures"] = json::array();
  for (const metric& m : metrics_of(one))
    titles.push_back({{"key", short_key(m)},
                      {"title", m.title},
                      {"higher_is_better", m.higher_is_better},
                      {"unit", m.show == show_bytes     ? "bytes"
                               : m.show == show_seconds ? "seconds"
                                                        : ""}});
  json& rows = result["rows"] = json::array();
  for (const comparison_row& row : one.rows) {
    json its = {{"name", row.who.name},
                {"failure", or_null(row.failure.empty() ? row.difference : row.failure)},
                {"ratios", ratios_json(one, row.who.name, goal)}};
    json& medians = its["medians"] = json::object();
    for (const metric& m : metrics_of(one))
      if (const auto found = summarise(one, row, m)) medians[short_key(m)] = found->median;
    rows.push_back(std::move(its));
  }
  return result;
}

json changes_json(const candidate& what) {
  json result = json::array();
  for (const field_change& c : what.changes)
    result.push_back({{"field", c.field}, {"value", c.value}, {"reason", c.reason}});
  return result;
}

json tried_json(const fit_report& all) {
  json result = json::array();
  for (const tried_recipe& one : all.tried) {
    const bool is_known = one.failure.empty();
    result.push_back({{"name", one.what.name},
                      {"changes", changes_json(one.what)},
                      {"failure", or_null(one.failure)},
                      {"replayed_peak_ratio", is_known ? json(one.peak_ratio) : json(nullptr)},
                      {"replayed_end_ratio", is_known ? json(one.end_ratio) : json(nullptr)},
                      {"replayed_malloc_time_ratio", is_known ? json(one.malloc_time_ratio) : json(nullptr)},
                      {"finalist", one.is_finalist}});
  }
  return result;
}

json report_json(const fit_report& all) {
  json result = {{"verdict", verdict_names[static_cast<unsigned>(all.answer.verdict)]},
                 {"sentence", all.answer.sentence},
                 {"recipe", or_null(all.recipe)},
                 {"library", or_null(all.library)},
                 {"report", or_null(all.page)}};
  const std::string row = row_of_answer(all);
  result["proof"] = all.proofs.empty() || row.empty() ? json::object() : ratios_json(all.proofs.front(), row, all.goal);
  result["malloc"] = or_null(all.answer.malloc);
  result["candidate"] = all.fitted ? json(all.fitted->name) : json(nullptr);
  result["goal"] = name_of(all.goal);
  result["command"] = all.command;
  result["changes"] = all.fitted ? changes_json(*all.fitted) : json::array();
  result["habits"] = all.evidence ? json(habits_of(*all.evidence)) : json::array();
  result["tried"] = tried_json(all);
  json& proofs = result["proofs"] = json::array();
  for (const comparison& one : all.proofs) proofs.push_back(comparison_json(one, all.goal));
  result["seconds"] = all.seconds;
  result["notes"] = all.notes;
  result["interrupted_by"] =
      all.interrupted_by == 0 ? json(nullptr) : json(fmt::format("SIG{}", sigabbrev_np(all.interrupted_by)));
  return result;
}

/// What the page draws besides.
json page_json(const fit_report& all) {
  json result = report_json(all);
  result["heapwright"] = HEAPWRIGHT_VERSION;
  result["started"] = all.started;
  result["machine"] = fmt::format("{}, {} cores, {}", all.machine.processor, all.machine.cores, all.machine.libc);
  if (all.fitted) result["header"] = header_of(*all.fitted, header_comment(all));
  if (!all.evidence) return result;
  const observation& o = all.evidence->does;
  json& history = result["history"] = json::array();
  for (const live_moment& m : o.history) history.push_back({m.at_ns, m.bytes});
  json& sizes = result["sizes"] = json::array();
  for (const size_use& u : o.sizes) sizes.push_back({u.size, u.allocations, u.live_at_peak});
  return result;
}

/// `verdict`: of the fit; a recipe that is not its answer was tried, and is not fitted.
std::string proof_table(const comparison& proof, fit_verdict verdict) {
  const std::vector<metric> metrics = metrics_of(proof);
  std::vector<std::vector<std::string>> lines{{""}};
  for (const metric& m : metrics) lines.front().push_back(m.title);
  for (const comparison_row& row : proof.rows) {
    std::vector<std::string>& line =
        lines.emplace_back(1, row.who.name == fitted_row && verdict != fit_verdict::fitted ? "tried" : row.who.name);
    if (!row.failure.empty() || !row.difference.empty()) {
      line.push_back(row.failure.empty() ? row.difference : row.failure);
      continue;
    }
    for (const metric& m : metrics) {
      const auto found = summarise(proof, row, m);
      std::string& cell = line.emplace_back(found ? m.show(found->median) : "");
      if (found && found->to_baseline)
        cell += fmt::format("  {} ({}-{})", shown_bound(found->to_baseline->ratio),
                            shown_bound(found->to_baseline->low), shown_bound(found->to_baseline->high));
    }
  }
  std::vector<std::size_t> widths(metrics.size() + 1);
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size() && line.size() == widths.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size() + 3);
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) text += fmt::format("{:<{}}", line[i], widths[i]);
    text = text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace

const char* name_of(fit_goal goal) noexcept {
  constexpr const char* names[] = {"time", "memory", "both", "latency"};
  return names[static_cast<unsigned>(goal)];
}

std::vector<std::string> header_comment(const fit_report& all) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("Fitted to {} by heapwright {}, {}, for {}.", command_of(all), HEAPWRIGHT_VERSION,
                              all.started.substr(0, 10), name_of(all.goal)));
  if (!all.proofs.empty())
    lines.push_back(fmt::format("Proven in {} interleaved rounds, beside the default: {}.", all.proofs.front().rounds,
                                all.answer.sentence));
  return lines;
}

std::string text_view(const fit_report& all, bool colour) {
  const char* const bold = colour ? "\033[1m" : "";
  const char* const end = colour ? "\033[0m" : "";
  std::string text = fmt::format("{}{}{}\n", bold, all.answer.sentence, end);
  if (all.evidence) {
    text += "\nWhat the program does\n";
    for (const std::string& habit : habits_of(*all.evidence)) text += fmt::format("  {}\n", habit);
  }
  if (!all.tried.empty()) {
    text += "\nTried, replayed beside the default\n";
    std::size_t width = 0;
    for (const tried_recipe& one : all.tried) width = std::max(width, one.what.name.size());
    for (const tried_recipe& one : all.tried) {
      text += fmt::format("  {:<{}}  ", one.what.name, width);
      text += one.failure.empty()
                  ? fmt::format("peak {:<9} time in malloc {:<9}{}", show_change(one.peak_ratio),
                                show_change(one.malloc_time_ratio), one.is_finalist ? " -> real runs" : "")
                  : one.failure;
      text = text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
    }
  }
  for (std::size_t i = 0; i < all.proofs.size(); ++i)
    text += fmt::format("\nProof{}, {} rounds; ratios to the default, with their 95 % interval\n{}",
                        i == 0 ? "" : fmt::format(" on input {} ({})", i, shown_command(all.proofs[i].command)),
                        all.proofs[i].rounds, proof_table(all.proofs[i], all.answer.verdict));
  if (all.answer.verdict == fit_verdict::fitted) {
    text += fmt::format("\n{}: the recipe, with the reason of each field\n{}: the malloc\n", all.recipe, all.library);
    text += fmt::format("  heapwright run --with {} -- PROGRAM\n", shown_command({&all.library, 1}));
  }
  if (!all.page.empty()) text += fmt::format("{}: the report\n", all.page);
  for (const std::string& note : all.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

std::string json_view(const fit_report& all) {
  return report_json(all).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string page_view(const fit_report& all) {
  return page_with_data(fit_page, page_json(all).dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace heapwright::tool
