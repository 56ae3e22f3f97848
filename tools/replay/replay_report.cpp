#include "replay_report.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_page.hpp"
#include "printable.hpp"
#include "quantities.hpp"
#include "wrapped_text.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

std::string command_of(const replay_report& all) { return shown_command(all.process.described.arguments); }

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
  const bool is_of_recording = all.row_of_recording() == &row;
  result["prediction_error"] = is_of_recording ? or_null(all.prediction_error()) : json(nullptr);
  return result;
}

/// What the page draws.
json page_json(const replay_report& all) {
  json result = {{"trace", all.trace},
                 {"command", command_of(all)},
                 {"process", all.process.described.number},
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
  std::uint64_t replayed = 0;
  for (const memory_moment& m : same->moments)
    if (m.at_ns <= process.known_to_ns) replayed = std::max(replayed, m.bytes);
  return static_cast<double>(replayed) / static_cast<double>(recorded_peak()) - 1;
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
    return unknown(fmt::format(
        "its memory was {} {}",
        process.memory.empty() ? "not looked at" : "looked at only " + show_count_of(process.memory.size(), "time"),
        process.ended.is_torn    ? "up to where the torn trace has all events"
        : process.ended.is_piece ? "during the piece, which is too short"
                                 : "while it was recorded: it did not run long enough"));
  const bool had_many_before = 100 * plan.left_out >= plan.operations;
  if (plan.left_out > 0 && (had_many_before || recorded_peak() < plan.live_peak))
    return unknown(
        fmt::format("blocks from before the {} were in its memory, or made room for later ones, and the replay does "
                    "not have them",
                    process.what_it_is()));
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

namespace {

struct table_column {
  std::string title;
  std::function<std::string(const replay_row&)> text_of;  ///< of a row that has run; empty: not measured
};

std::string peak_text(const replay_report& all, const replay_row& row) {
  const memory_moment* const peak = row.peak();
  const memory_moment* const base = all.rows.front().peak();
  std::string text = show_bytes(static_cast<double>(peak->bytes));
  if (base != nullptr && base != peak && base->bytes > 0)
    text += " " + show_ratio(static_cast<double>(peak->bytes) / static_cast<double>(base->bytes));
  return text;
}

std::string part_live_text(const replay_row& row) {
  const auto peak = static_cast<double>(row.peak()->bytes);
  return fmt::format("{:.0f} %", peak > 0 ? static_cast<double>(row.live_at_peak()) / peak * 100 : 100);
}

std::string time_text(const replay_report& all, const replay_row& row) {
  const auto seconds = row.seconds();
  if (!seconds) return "";
  const auto ratio = all.time_ratio(row);
  if (!ratio) return show_seconds(*seconds);
  const ratio_verdict said = ratio->judge(all.tolerance);
  return fmt::format("{}  {} ({}-{})", show_seconds(*seconds),
                     said == ratio_verdict::same      ? "same"
                     : said == ratio_verdict::unclear ? "unclear"
                                                      : shown_bound(ratio->ratio),
                     shown_bound(ratio->low), shown_bound(ratio->high));
}

/// Those of which a row has figures.
std::vector<table_column> columns_of(const replay_report& all) {
  const bool is_counted = std::ranges::any_of(all.rows, [](const replay_row& row) { return !!row.instructions; });
  const bool has_memory = std::ranges::any_of(all.rows, [](const replay_row& row) { return !row.moments.empty(); });
  const bool has_time = std::ranges::any_of(all.rows, [](const replay_row& row) { return !row.rounds.empty(); });
  std::vector<table_column> columns;
  const auto of_memory = [&](const char* title, auto text_of) {
    if (has_memory)
      columns.push_back(
          {title, [text_of](const replay_row& row) { return row.peak() ? text_of(row) : std::string(); }});
  };
  of_memory("Peak memory", [&all](const replay_row& row) { return peak_text(all, row); });
  of_memory("Mean", [](const replay_row& row) { return show_bytes(row.mean_bytes()); });
  of_memory("At end", [](const replay_row& row) { return show_bytes(static_cast<double>(row.final_bytes)); });
  of_memory("Live at peak", part_live_text);
  columns.push_back(
      {"Page faults", [](const replay_row& row) { return show_count(static_cast<double>(row.page_faults)); }});
  of_memory("System calls", [](const replay_row& row) {
    return row.memory_calls ? show_count(static_cast<double>(*row.memory_calls)) : std::string();
  });
  if (is_counted)
    columns.push_back({"Instructions", [&all](const replay_row& row) {
                         return row.instructions
                                    ? fmt::format("{:.1f} each", static_cast<double>(*row.instructions) /
                                                                     static_cast<double>(all.plan.operations))
                                    : std::string();
                       }});
  if (has_time) columns.push_back({"Time in malloc", [&all](const replay_row& row) { return time_text(all, row); }});
  return columns;
}

std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1) + '\n'; }

struct palette {
  const char *bold = "", *bad = "", *end = "";
};

/// Empty: the row has figures.
std::string why_none(const replay_row& row, const palette& p) {
  if (!row.failure.empty()) return fmt::format("{}{}{}", p.bad, row.failure, p.end);
  return row.has_run() ? "" : "not measured";
}

std::string wide_table(const replay_report& all, std::span<const table_column> columns,
                       std::span<const std::size_t> widths, std::size_t name_width, const palette& p) {
  std::string line = std::string(name_width, ' ');
  for (std::size_t i = 0; i < columns.size(); ++i) line += fmt::format("{:<{}}", columns[i].title, widths[i]);
  std::string text = trimmed(line);
  for (const replay_row& row : all.rows) {
    line = fmt::format("{}{:<{}}{}", p.bold, row.who.name, name_width, p.end);
    const std::string none = why_none(row, p);
    for (std::size_t i = 0; i < columns.size() && none.empty(); ++i)
      line += fmt::format("{:<{}}", columns[i].text_of(row), widths[i]);
    text += trimmed(line + none);
  }
  return text;
}

/// A figure to a line.
std::string narrow_table(const replay_report& all, std::span<const table_column> columns, const palette& p) {
  std::size_t title_width = 0;
  for (const table_column& c : columns) title_width = std::max(title_width, c.title.size() + 2);
  std::string text;
  for (const replay_row& row : all.rows) {
    text += fmt::format("{}{}{}\n", p.bold, row.who.name, p.end);
    if (const std::string none = why_none(row, p); !none.empty()) {
      text += fmt::format("  {}\n", none);
      continue;
    }
    for (const table_column& c : columns)
      if (const std::string figure = c.text_of(row); !figure.empty())
        text += fmt::format("  {:<{}}{}\n", c.title, title_width, figure);
  }
  return text;
}

std::string table_of(const replay_report& all, const palette& p, unsigned terminal_columns) {
  const std::vector<table_column> columns = columns_of(all);
  std::size_t name_width = 12;
  for (const replay_row& row : all.rows) name_width = std::max(name_width, row.who.name.size() + 2);
  std::vector<std::size_t> widths;
  for (const table_column& c : columns) {
    widths.push_back(c.title.size() + 2);
    for (const replay_row& row : all.rows)
      if (why_none(row, p).empty()) widths.back() = std::max(widths.back(), c.text_of(row).size() + 2);
  }
  const std::size_t width = std::accumulate(widths.begin(), widths.end(), name_width) - 2;  // without the last gap
  return terminal_columns != 0 && terminal_columns < width ? narrow_table(all, columns, p)
                                                           : wide_table(all, columns, widths, name_width, p);
}

/// Which looks at memory count.
std::string described_range(const traced_process& p) {
  return p.ended.is_torn ? " up to where the torn trace has all events" : "";
}

}  // namespace

std::string table_view(const replay_report& all, bool colour, unsigned terminal_columns) {
  const palette p = colour ? palette{"\033[1m", "\033[31m", "\033[0m"} : palette{};
  const auto& described = all.process.described;
  const std::size_t width = terminal_columns == 0 ? 0 : terminal_columns - 1;
  const auto sentence = [&](const std::string& words) { return wrapped(words, 0, 0, width); };
  std::string text = sentence(fmt::format("process {} of {}: {}", described.number, all.trace, command_of(all)));
  text += sentence(fmt::format("{} of {} in {}, live at most {}", show_count_of(all.plan.operations, "operation"),
                               show_count_of(all.plan.threads, "thread"),
                               show_seconds(static_cast<double>(all.plan.duration_ns) / 1e9),
                               show_bytes(static_cast<double>(all.plan.live_peak))));
  if (const auto error = all.prediction_error())
    text += sentence(fmt::format("the program itself had at most {} on {}, by {}{}: this replay is off by {}",
                                 show_bytes(static_cast<double>(all.recorded_peak())), malloc_name(described.allocator),
                                 show_count_of(all.process.memory.size(), "look"), described_range(all.process),
                                 show_ratio(*error + 1)));
  text += '\n' + table_of(all, p, terminal_columns) + '\n';
  if (std::ranges::any_of(all.rows, [](const replay_row& row) { return !row.moments.empty(); }))
    text += sentence(
        "Memory: anonymous, from the first operation on. Live at peak: the most that was asked for and not freed while "
        "memory was within 1 % of its peak; more than 100 % where blocks were never written to in full.");
  if (all.rounds > 0)
    text += sentence(fmt::format("Time: processor time less that of a replay without a malloc, median of {} round{}{}.",
                                 all.rounds, all.rounds == 1 ? "" : "s",
                                 all.rounds > 1 ? "; then the ratio to glibc, with its 95 % interval" : ""));
  for (const std::string& note : all.notes) text += sentence(fmt::format("Note: {}", note));
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
