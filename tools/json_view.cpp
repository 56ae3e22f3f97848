// A comparison as JSON, for programs, and as the page that draws itself from the same JSON. The
// shape is described in docs/compare.md and changes only together with "format".
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "comparison.hpp"
#include "embedded_page.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

json or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

json signal_or_null(int signal) {
  return signal == 0 ? json(nullptr) : json(fmt::format("SIG{}", sigabbrev_np(signal)));
}

json sample_json(const measurement& m, const std::optional<server_plan>& server) {
  json result = {{"wall_seconds", m.wall_seconds},     {"user_seconds", m.user_seconds},
                 {"system_seconds", m.system_seconds}, {"peak_rss_bytes", m.peak_rss},
                 {"end_rss_bytes", m.end_rss},         {"minor_faults", m.minor_faults},
                 {"major_faults", m.major_faults}};
  if (!server) return result;
  result["steady_rss_bytes"] = m.steady_rss;
  json& figures = result["figures"] = json::object();
  for (std::size_t i = 0; i < server->figures.size(); ++i) figures[server->figures[i].name()] = m.driver_figures.at(i);
  return result;
}

json server_json(const server_plan& plan) {
  json figures = json::array();
  for (const driver_figure& figure : plan.figures)
    figures.push_back({{"name", figure.name()}, {"better", figure.higher_is_better() ? "higher" : "lower"}});
  const bool by_port = plan.ready.port != 0;
  return {{"driver", plan.driver},
          {"ready_port", by_port ? json(plan.ready.port) : json(nullptr)},
          {"ready_line", by_port ? json(nullptr) : json(plan.ready.line)},
          {"figures", std::move(figures)}};
}

json ratio_json(const ratio_estimate& r, double tolerance) {
  constexpr const char* words[] = {"same", "less", "more", "unclear"};
  const ratio_verdict said = r.judge(tolerance);
  json result = {
      {"estimate", r.ratio}, {"low", r.low}, {"high", r.high}, {"verdict", words[static_cast<unsigned>(said)]}};
  if (said == ratio_verdict::unclear) {
    const auto enough = r.rounds_to_decide(tolerance, most_rounds);
    result["rounds_to_decide"] = enough ? json(*enough) : json(nullptr);
  }
  return result;
}

json finding_json(const row_finding& f) {
  return {{"when", f.when},          {"rule", f.what.rule},     {"bytes", f.what.bytes}, {"text", f.what.text},
          {"fields", f.what.fields}, {"advice", f.what.advice}, {"page", rules_page}};
}

json row_json(const comparison& all, const comparison_row& row) {
  json result = {{"name", row.who.name},
                 {"library", or_null(row.who.library)},
                 {"remark", or_null(row.remark)},
                 {"failure", or_null(row.failure)},
                 {"output_difference", or_null(row.difference)},
                 {"verdict", or_null(verdict_on(all, row))},
                 {"metrics", json::object()}};
  if (all.server) result["figures"] = json::object();
  result["findings"] = json::array();
  for (const row_finding& f : row.findings) result["findings"].push_back(finding_json(f));
  result["samples"] = json::array();
  for (const metric& property : metrics_of(all)) {
    const auto found = summarise(all, row, property);
    if (!found) continue;
    json& m = result[property.is_from_driver ? "figures" : "metrics"][property.key];
    m["median"] = found->median;
    m["ratio"] = nullptr;
    if (const auto& r = found->to_baseline) m["ratio"] = ratio_json(*r, all.tolerance);
  }
  if (row.failure.empty())
    for (const measurement& sample : row.rounds) result["samples"].push_back(sample_json(sample, all.server));
  return result;
}

}  // namespace

std::string json_view(const comparison& all) {
  json result = {{"format", "heapwright compare 2"},
                 {"heapwright", HEAPWRIGHT_VERSION},
                 {"command", all.command},
                 {"started", all.started},
                 {"machine",
                  {{"processor", all.machine.processor},
                   {"cores", all.machine.cores},
                   {"memory_bytes", all.machine.memory_bytes},
                   {"kernel", all.machine.kernel},
                   {"libc", all.machine.libc}}},
                 {"rounds", all.rounds},
                 {"interrupted_by", signal_or_null(all.interrupted_by)},
                 {"tolerance", all.tolerance},
                 {"baseline", all.base().who.name},
                 {"notes", all.notes}};
  if (all.server) result["server"] = server_json(*all.server);
  result["rows"] = json::array();
  for (const comparison_row& row : all.rows) result["rows"].push_back(row_json(all, row));
  // A command line need not be UTF-8; what is not becomes U+FFFD rather than an exception.
  return result.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string page_view(const comparison& all) { return page_with_data(compare_page, json_view(all)); }

}  // namespace heapwright::tool
