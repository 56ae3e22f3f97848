#include "replay_report.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "embedded_page.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

std::string command_of(const replay_report& all) {
  return printable(fmt::format("{}", fmt::join(all.process.described.arguments, " ")));
}

std::string show_ratio(double r) { return fmt::format("{:+.1f} %", (r - 1) * 100); }

json row_json(const replay_report& all, const replay_row& row) {
  const memory_moment* const peak = row.peak();
  json result = {{"allocator", row.who.name}};
  const auto bytes = [&](std::uint64_t value) { return peak == nullptr ? json(nullptr) : json(value); };
  result["peak_rss_bytes"] = bytes(peak == nullptr ? 0 : peak->bytes);
  result["mean_rss_bytes"] = bytes(static_cast<std::uint64_t>(row.mean_bytes()));
  result["final_rss_bytes"] = bytes(row.final_bytes);
  result["live_peak_bytes"] = all.plan.live_peak;
  result["seconds"] = or_null(row.seconds());
  result["page_faults"] = row.failure.empty() && row.has_run() ? json(row.page_faults) : json(nullptr);
  result["system_calls"] = or_null(row.memory_calls);
  result["wall_seconds"] = or_null(row.wall_seconds());
  result["instructions"] = or_null(row.instructions);
  result["live_bytes_at_peak"] = bytes(row.live_at_peak());
  result["failure"] = row.failure.empty() ? json(nullptr) : json(row.failure);
  result["prediction_error"] = or_null(all.prediction_error());
  return result;
}

/// What the page draws.
json page_json(const replay_report& all) {
  json result = {{"trace", all.trace},
                 {"command", command_of(all)},
                 {"heapwright", HEAPWRIGHT_VERSION},
                 {"recorded_on", malloc_name(all.process.described.allocator)},
                 {"recorded_peak_bytes", all.recorded_peak()},
                 {"prediction_error", or_null(all.prediction_error())},
                 {"operations", all.plan.operations},
                 {"threads", all.plan.threads},
                 {"duration_ns", all.plan.duration_ns},
                 {"rounds", all.rounds},
                 {"notes", all.notes}};
  json& recorded = result["recorded"] = json::array();
  for (const trace::memory& m : all.process.memory) recorded.push_back({m.at_ns, m.bytes});
  json& rows = result["rows"] = json::array();
  for (const replay_row& row : all.rows) {
    json one = row_json(all, row);
    json& moments = one["moments"] = json::array();
    for (const memory_moment& m : row.moments) moments.push_back({m.at_ns, m.live, m.bytes});
    if (const auto r = all.time_ratio(row)) one["time_ratio"] = {r->ratio, r->low, r->high};
    rows.push_back(std::move(one));
  }
  return result;
}

}  // namespace

const memory_moment* replay_row::peak() const noexcept {
  const auto found = std::ranges::max_element(moments, {}, &memory_moment::bytes);
  return found == moments.end() ? nullptr : &*found;
}

std::uint64_t replay_row::live_at_peak() const noexcept {
  const memory_moment* const most = peak();
  std::uint64_t live = 0;
  for (const memory_moment& m : moments)
    if (m.bytes >= most->bytes - most->bytes / 100) live = std::max(live, m.live);
  return live;
}

double replay_row::mean_bytes() const noexcept {
  if (moments.empty()) return 0;
  // Each moment stands for the time until the next one.
  double sum = 0, time = 0;
  for (std::size_t i = 0; i + 1 < moments.size(); ++i) {
    const auto lasts = static_cast<double>(moments[i + 1].at_ns - moments[i].at_ns);
    sum += static_cast<double>(moments[i].bytes) * lasts;
    time += lasts;
  }
  return time > 0 ? sum / time : static_cast<double>(moments.back().bytes);
}

std::optional<double> replay_row::seconds() const {
  if (rounds.empty()) return std::nullopt;
  std::vector<double> all;
  for (const replay_time& r : rounds) all.push_back(r.allocator_seconds);
  return median(std::move(all));
}

std::optional<double> replay_row::wall_seconds() const {
  if (rounds.empty()) return std::nullopt;
  std::vector<double> all;
  for (const replay_time& r : rounds) all.push_back(r.wall_seconds);
  return median(std::move(all));
}

std::uint64_t replay_report::recorded_peak() const noexcept {
  const auto found = std::ranges::max_element(process.memory, {}, &trace::memory::bytes);
  return found == process.memory.end() ? 0 : found->bytes;
}

const replay_row* replay_report::row_of_recording() const {
  const auto found = std::ranges::find(rows, malloc_name(process.described.allocator),
                                       [](const replay_row& row) { return row.who.name; });
  return found == rows.end() ? nullptr : &*found;
}

std::optional<double> replay_report::prediction_error() const {
  const replay_row* const same = row_of_recording();
  if (same == nullptr || same->peak() == nullptr || !why_no_prediction().empty()) return std::nullopt;
  return static_cast<double>(same->peak()->bytes) / static_cast<double>(recorded_peak()) - 1;
}

std::string replay_report::why_no_prediction() const {
  constexpr std::size_t enough_looks = 5;
  if (std::ranges::all_of(rows, [](const replay_row& row) { return row.moments.empty(); })) return "";
  const auto unknown = [](const std::string& why) {
    return fmt::format("how far off the predicted peaks are is not known: {}", why);
  };
  if (row_of_recording() == nullptr)
    return unknown(
        fmt::format("the program ran on {}, which was not replayed", malloc_name(process.described.allocator)));
  if (process.memory.size() < enough_looks || recorded_peak() == 0)
    return unknown(
        fmt::format("its memory was looked at only {} time{} while it was recorded: it did not run long enough",
                    process.memory.size(), process.memory.size() == 1 ? "" : "s"));
  return "";
}

std::optional<ratio_estimate> replay_report::time_ratio(const replay_row& row) const {
  if (&row == &rows.front() || rounds < 2 || row.rounds.size() < rounds) return std::nullopt;
  std::vector<double> its, firsts;
  for (unsigned i = 0; i < rounds; ++i) {
    its.push_back(row.rounds[i].allocator_seconds);
    firsts.push_back(rows.front().rounds[i].allocator_seconds);
  }
  return paired_ratio(its, firsts);
}

std::string table_view(const replay_report& all, bool colour) {
  const char* const bold = colour ? "\033[1m" : "";
  const char* const bad = colour ? "\033[31m" : "";
  const char* const end = colour ? "\033[0m" : "";
  const auto& p = all.process.described;
  std::string text = fmt::format("process {} of {}: {}\n", p.number, all.trace, command_of(all));
  text += fmt::format("{} operations of {} thread{} in {}, live at most {}\n",
                      show_count(static_cast<double>(all.plan.operations)), all.plan.threads,
                      all.plan.threads == 1 ? "" : "s", show_seconds(static_cast<double>(all.plan.duration_ns) / 1e9),
                      show_bytes(static_cast<double>(all.plan.live_peak)));
  if (const auto error = all.prediction_error())
    text += fmt::format("the program itself had at most {} on {}: this replay is off by {}\n",
                        show_bytes(static_cast<double>(all.recorded_peak())), malloc_name(p.allocator),
                        show_ratio(*error + 1));
  std::size_t name_width = 12;
  for (const replay_row& row : all.rows) name_width = std::max(name_width, row.who.name.size() + 2);
  const bool is_counted = std::ranges::any_of(all.rows, [](const replay_row& row) { return !!row.instructions; });
  const bool has_memory = std::ranges::any_of(all.rows, [](const replay_row& row) { return !row.moments.empty(); });
  const bool has_time = std::ranges::any_of(all.rows, [](const replay_row& row) { return !row.rounds.empty(); });
  const auto cell = [&](std::size_t width, const std::string& value) { text += fmt::format("{:<{}}", value, width); };
  const auto end_line = [&] { text = text.substr(0, text.find_last_not_of(' ') + 1) + '\n'; };
  text += '\n';
  cell(name_width, "");
  if (has_memory) text += fmt::format("{:<22}{:<12}{:<12}{:<14}", "Peak memory", "Mean", "At end", "Live at peak");
  cell(13, "Page faults");
  if (has_memory) cell(14, "System calls");
  if (is_counted) cell(14, "Instructions");
  if (has_time) text += "Time in malloc";
  end_line();
  const memory_moment* const base = all.rows.front().peak();
  for (const replay_row& row : all.rows) {
    text += fmt::format("{}{:<{}}{}", bold, row.who.name, name_width, end);
    if (!row.failure.empty() || !row.has_run()) {
      text += row.failure.empty() ? "not measured\n" : fmt::format("{}{}{}\n", bad, row.failure, end);
      continue;
    }
    if (const memory_moment* const peak = row.peak(); peak != nullptr) {
      std::string shown = show_bytes(static_cast<double>(peak->bytes));
      if (base != nullptr && base != peak && base->bytes > 0)
        shown += " " + show_ratio(static_cast<double>(peak->bytes) / static_cast<double>(base->bytes));
      const double part =
          peak->bytes == 0 ? 1 : static_cast<double>(row.live_at_peak()) / static_cast<double>(peak->bytes);
      text += fmt::format("{:<22}{:<12}{:<12}{:<14}", shown, show_bytes(row.mean_bytes()),
                          show_bytes(static_cast<double>(row.final_bytes)), fmt::format("{:.0f} %", part * 100));
    } else if (has_memory) {
      cell(60, "");
    }
    cell(13, show_count(static_cast<double>(row.page_faults)));
    if (has_memory) cell(14, row.memory_calls ? show_count(static_cast<double>(*row.memory_calls)) : "");
    if (is_counted)
      cell(14, row.instructions ? fmt::format("{:.1f} each", static_cast<double>(*row.instructions) /
                                                                 static_cast<double>(all.plan.operations))
                                : "");
    if (const auto seconds = row.seconds()) text += show_seconds(*seconds);
    if (const auto r = all.time_ratio(row)) {
      const ratio_verdict said = r->judge(all.tolerance);
      text += fmt::format("  {} ({}-{})",
                          said == ratio_verdict::same      ? "same"
                          : said == ratio_verdict::unclear ? "unclear"
                                                           : shown_bound(r->ratio),
                          shown_bound(r->low), shown_bound(r->high));
    }
    end_line();
  }
  text += '\n';
  if (has_memory)
    text +=
        "Memory: anonymous, from the first operation on. Live at peak: the most that was asked for and not freed while "
        "memory was within 1 % of its peak; more than 100 % where blocks were never written to in full.\n";
  if (all.rounds > 0)
    text += fmt::format("Time: processor time less that of a replay without a malloc, median of {} round{}{}.\n",
                        all.rounds, all.rounds == 1 ? "" : "s",
                        all.rounds > 1 ? "; then the ratio to glibc, with its 95 % interval" : "");
  for (const std::string& note : all.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

std::string json_view(const replay_report& all) {
  json result = json::array();
  for (const replay_row& row : all.rows) result.push_back(row_json(all, row));
  return result.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string page_view(const replay_report& all) {
  return page_with_data(replay_page, page_json(all).dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace heapwright::tool
