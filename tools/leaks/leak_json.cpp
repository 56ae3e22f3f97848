// {"format": "heapwright leaks 1", "exit_code", "processes": [...]}: docs/leaks.md says what is in
// it.
#include <algorithm>
#include <cmath>

#include <sys/wait.h>
#include <nlohmann/json.hpp>

#include "leak_report.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

json figures_json(const leak_figures& f) { return {{"bytes", f.bytes}, {"blocks", std::llround(f.blocks)}}; }

/// What is not judged may be estimated from samples.
json estimate_json(const leak_figures& f) {
  json result = figures_json(f);
  result["bytes_error"] = std::llround(error_of(f));
  return result;
}

json site_json(const named_site& s) {
  json stack = json::array();
  for (const place& p : s.stack)
    stack.push_back({{"function", p.function},
                     {"file", p.file.empty() ? json(nullptr) : json(p.file)},
                     {"line", p.file.empty() ? json(nullptr) : json(p.line)},
                     {"module", p.module},
                     {"is_inlined", p.is_inlined}});
  return {{"lost", figures_json(s.figures.lost)},
          {"lost_with_these", figures_json(s.figures.lost_with_these)},
          {"indirectly_lost", figures_json(s.figures.indirectly_lost)},
          {"reachable", figures_json(s.figures.reachable)},
          {"not_judged", estimate_json(s.figures.not_judged)},
          {"suppressed_by", s.suppressed_by.empty() ? json(nullptr) : json(s.suppressed_by)},
          {"is_cut", s.is_cut},
          {"stack", stack}};
}

json process_json(const named_leaks& p) {
  const auto& process = p.leaks.figures.process;
  json result = {{"process", process.process_id},
                 {"program", process.program},
                 {"arguments", process.arguments},
                 {"exit_code", nullptr},
                 {"signal", nullptr},
                 {"not_judged_because", p.leaks.not_judged.empty() ? json(nullptr) : json(p.leaks.not_judged)},
                 {"is_estimate", p.leaks.is_estimate},
                 {"blocks_without_record", p.leaks.unknown_blocks},
                 {"lost", figures_json(p.lost)},
                 {"indirectly_lost", figures_json(p.indirectly_lost)},
                 {"reachable", figures_json(p.reachable)},
                 {"not_judged", estimate_json(p.not_judged)},
                 {"suppressed", figures_json(p.suppressed)},
                 {"sites", json::array()}};
  if (const auto status = p.leaks.status) {
    if (WIFEXITED(*status)) result["exit_code"] = WEXITSTATUS(*status);
    if (WIFSIGNALED(*status)) result["signal"] = WTERMSIG(*status);
  }
  std::vector<const named_site*> sites;
  sites.reserve(p.sites.size());
  for (const named_site& s : p.sites) sites.push_back(&s);
  const auto weight = [](const named_site* s) {
    return s->figures.lost.bytes + s->figures.lost_with_these.bytes + s->figures.not_judged.bytes;
  };
  std::ranges::stable_sort(sites, [&](const auto* a, const auto* b) { return weight(a) > weight(b); });
  for (const named_site* s : sites) result["sites"].push_back(site_json(*s));
  return result;
}

}  // namespace

std::string leak_json(const command_leaks& command, int exit_code) {
  json result = {{"format", "heapwright leaks 1"},
                 {"exit_code", exit_code},
                 {"processes", json::array()},
                 {"processes_without_probe", json::array()},
                 {"idle_suppressions", command.idle_suppressions}};
  for (const named_leaks& p : command.processes) result["processes"].push_back(process_json(p));
  for (const unobserved_process& p : command.unobserved)
    result["processes_without_probe"].push_back({{"process", p.id}, {"program", p.program}});
  // Command lines and names need not be UTF-8.
  return result.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace heapwright::tool
