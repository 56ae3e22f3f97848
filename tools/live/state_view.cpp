// The views of figures: no symbols, no samples, cheap enough to be made for each event.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "other_run.hpp"
#include "stack_measure.hpp"
#include "views.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;
using segment::size_scale;

/// The program's own texts may be any bytes.
std::string text_of(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

json time_of(const moment& m, std::uint64_t ns) { return ns == 0 ? json(nullptr) : json(m.unix_seconds(ns)); }

const char* name_of(life state) {
  switch (state) {
    case life::running: return "running";
    case life::exited: return "exited";
    case life::replaced: return "replaced";
    case life::killed: return "killed";
    case life::lost: return "lost";
    case life::gone: return "gone";
    case life::left: return "left";
  }
  return "";
}

const char* name_of(segment::slot_state state) {
  switch (state) {
    case segment::slot_state::alive: return "alive";
    case segment::slot_state::gone: return "gone";
    case segment::slot_state::everyone: return "others";
    case segment::slot_state::unused: break;
  }
  return "unused";
}

/// Of the program's processor time; null: not measured.
json sampling_share(const segment::process_figures& p) {
  if (p.processor_ns == 0) return nullptr;
  return static_cast<double>(p.sampling_ns) / static_cast<double>(p.processor_ns);
}

/// Of the time that the program has run; null: not measured.
json sampling_share_of_time(const moment& m) {
  const segment::process_figures& p = m.figures.process;
  if (p.processor_ns == 0 || m.figures.at_ns <= p.started_ns) return nullptr;
  return static_cast<double>(p.sampling_ns) / static_cast<double>(m.figures.at_ns - p.started_ns);
}

json process_part(const moment& m, watched_process& process) {
  const segment::process_figures& p = m.figures.process;
  return {{"id", p.process_id},
          {"state", name_of(m.state)},
          {"has_probe", m.has_probe},
          {"program", p.program},
          {"arguments", p.arguments},
          {"allocator", p.allocator},
          {"started", m.unix_seconds(p.started_ns)},
          {"ended", time_of(m, p.ended_ns)},
          {"forked_from", p.forked_from},
          {"inherited_bytes", p.inherited_bytes},
          {"is_counting", p.is_counting},
          {"is_of_samples", p.is_of_samples},
          {"live_error", p.is_of_samples ? error_of(p.live_variance, unseen_of_all(p, process.stacks().figures)) : 0},
          {"counting_since", time_of(m, p.counting_since_ns)},
          {"counts_from_start", p.counts_from_start()},
          {"interval", p.interval},
          {"interval_adapts", p.interval_adapts},
          {"samples_all", p.samples_all},
          {"sampling_share", sampling_share(p)},
          {"sampling_share_of_time", sampling_share_of_time(m)},
          {"peak", p.peak},
          {"peak_at", time_of(m, p.peak_at_ns)},
          {"peak_grain", p.peak_grain},
          {"threads_ever", p.threads_ever},
          {"threads_folded", p.threads_folded},
          {"lost_samples", p.lost_samples},
          {"mistakes", p.mistakes},
          {"is_torn", m.figures.is_torn}};
}

json marks_part(const moment& m, const watched_process& process) {
  json marks = json::array();
  for (std::size_t i = 0; i < m.figures.process.marks.size(); ++i) {
    const auto& mark = m.figures.process.marks[i];
    const bool is_known = process.since(std::to_string(i)) != nullptr;
    marks.push_back(
        {{"number", i}, {"name", mark.name}, {"at", m.unix_seconds(mark.at_ns)}, {"can_compare", is_known}});
  }
  return marks;
}

}  // namespace

std::string state_view(watched_process& process) {
  const auto seen = process.now();
  const moment& m = *seen;
  json result = {{"format", "heapwright live 1"},
                 {"at", m.unix_seconds(m.figures.at_ns)},
                 {"may_control", process.may_control()},
                 {"process", process_part(m, process)},
                 {"totals",
                  {{"live", m.live()},
                   {"live_blocks", static_cast<std::int64_t>(m.total.allocations - m.total.frees)},
                   {"allocations", m.total.allocations},
                   {"allocated_bytes", m.total.allocated_bytes},
                   {"frees", m.total.frees},
                   {"freed_bytes", m.total.freed_bytes},
                   {"requested_bytes", m.total.requested_bytes},
                   {"live_rounding", nullptr}}},
                 {"memory", nullptr},
                 {"marks", marks_part(m, process)},
                 {"other_run", process.other() ? json(process.other()->run) : json(nullptr)},
                 {"watched_since", m.unix_seconds(process.since("start")->at_ns)}};
  if (const auto live = m.live_parts()) result["totals"]["live_rounding"] = live->rounding;
  if (m.memory) {
    result["memory"] = {{"rss", m.memory->rss},
                        {"pss", m.memory->pss},
                        {"anonymous", m.memory->anonymous},
                        {"swap", m.memory->swap},
                        {"python_arenas", nullptr}};
    if (m.memory->python_arenas) result["memory"]["python_arenas"] = *m.memory->python_arenas;
  }

  result["class_columns"] = {"largest", "allocations", "allocated_bytes", "frees", "freed_bytes", "peak"};
  json& classes = result["classes"] = json::array();
  const auto by_class = m.figures.by_class();
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const segment::class_figures& f = by_class[c];
    if (f.allocations == 0 && f.frees == 0) continue;
    classes.push_back({size_scale::largest(c), f.allocations, f.allocated_bytes, f.frees, f.freed_bytes,
                       m.figures.process.class_peak[c]});
  }

  result["thread_columns"] = {
      "slot",  "id",          "state", "name", "began", "ended", "requested_bytes", "allocations", "allocated_bytes",
      "frees", "freed_bytes", "peak"};
  json& threads = result["threads"] = json::array();
  for (const segment::thread_figures& t : m.figures.threads) {
    const segment::class_figures f = t.total();
    if (t.state == segment::slot_state::everyone && f.allocations == 0 && f.frees == 0) continue;
    threads.push_back({t.slot, t.thread_id, name_of(t.state), t.name, time_of(m, t.began_ns), time_of(m, t.ended_ns),
                       f.requested_bytes, f.allocations, f.allocated_bytes, f.frees, f.freed_bytes, t.peak_net});
  }

  result["meter_columns"] = {"number",   "name",        "open",   "allocations", "deallocations",
                             "failures", "total_bytes", "in_use", "peak"};
  json& meters = result["meters"] = json::array();
  for (const segment::meter_figures& f : m.figures.process.meters)
    meters.push_back({meters.size(), f.name, f.is_open, f.allocations, f.deallocations, f.failures, f.total_bytes,
                      f.in_use, f.peak});
  return text_of(result);
}

std::string mistakes_view(watched_process& process) {
  const auto seen = process.now();
  json result = {{"at", seen->unix_seconds(seen->figures.at_ns)}, {"mistakes", seen->figures.process.mistakes}};
  json& reports = result["reports"] = json::array();
  for (const segment::misuse_report_figures& r : process.misuse_reports())
    reports.push_back(
        {{"at", seen->unix_seconds(r.at_ns)}, {"thread", r.thread_id}, {"mistakes", r.mistakes}, {"text", r.text}});
  return text_of(result);
}

std::string cells_view(watched_process& process) {
  const auto seen = process.now();
  json result = {{"at", seen->unix_seconds(seen->figures.at_ns)},
                 {"columns", {"slot", "largest", "allocations", "allocated_bytes", "frees", "freed_bytes"}}};
  json& rows = result["rows"] = json::array();
  for (const segment::thread_figures& t : seen->figures.threads) {
    for (unsigned c = 0; c < size_scale::count; ++c) {
      const segment::class_figures& f = t.classes[c];
      if (f.allocations == 0 && f.frees == 0) continue;
      rows.push_back({t.slot, size_scale::largest(c), f.allocations, f.allocated_bytes, f.frees, f.freed_bytes});
    }
  }
  return text_of(result);
}

std::string history_view(watched_process& process, double since, std::size_t most) {
  const auto seen = process.now();
  const segment::process_figures& p = seen->figures.process;
  const double after = std::clamp((since - seen->unix_seconds(p.started_ns)) * 1e9, 0.0, 9e18);
  json at = json::array(), live = json::array(), rss = json::array(), bytes = json::array(), count = json::array();
  for (const history_point& point :
       process.points(after > 0 ? p.started_ns + static_cast<std::uint64_t>(after) : 0, most)) {
    at.push_back(seen->unix_seconds(point.at_ns));
    live.push_back(point.live);
    rss.push_back(point.rss == 0 ? json(nullptr) : json(point.rss));
    bytes.push_back(point.allocated_bytes);
    count.push_back(point.allocations);
  }
  return text_of({{"at", at}, {"live", live}, {"rss", rss}, {"allocated_bytes", bytes}, {"allocations", count}});
}

}  // namespace heapwright::tool
