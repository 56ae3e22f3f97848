#include "advise_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_page.hpp"
#include "printable.hpp"
#include "quantities.hpp"
#include "wrapped_text.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

double part_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string show_part(double part, double whole) {
  const double percent = 100 * part_of(part, whole);
  return fmt::format("{:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

std::string command_of(const advise_report& all) { return shown_command(all.process.described.arguments); }

/// A sentence of its own, `indent` spaces from the left; leaves the terminal's last column free.
std::string lines_of(const std::string& sentence, std::size_t indent, unsigned columns) {
  return std::string(indent, ' ') + wrapped(sentence, indent, indent, columns == 0 ? 0 : columns - 1);
}

/// "0.21 s: 26 % (24-28) of the time in malloc, ...".
std::string savings_text(const advise_report& all, const saving& s) {
  std::vector<std::string> parts;
  // An interval may reach beyond all that there is.
  const auto of_malloc = [&s](double seconds) { return show_part(std::min(s.of_malloc(seconds), 1.0), 1); };
  if (const auto time = s.time(); time && time->low > 0) {
    parts.push_back(fmt::format("{}: {} of the time in malloc ({} to {}), {} of the recorded run",
                                show_seconds(time->median), of_malloc(time->median), of_malloc(time->low),
                                of_malloc(time->high), show_part(time->median, all.program_seconds())));
  } else if (time && time->high < 0) {
    parts.push_back(fmt::format("no time: it takes {} more", show_seconds(-time->median)));
  } else {
    parts.emplace_back("no time that could be told from noise");
  }
  if (const auto bytes = static_cast<double>(s.bytes()); bytes > 0)
    parts.push_back(
        fmt::format("{} of the peak ({})", show_bytes(bytes), show_part(bytes, static_cast<double>(s.peak_as_is))));
  else if (bytes < 0)
    parts.push_back(fmt::format("no memory: the peak is {} higher", show_bytes(-bytes)));
  else
    parts.emplace_back("no memory");
  return fmt::format("{}; and {}", parts[0], parts[1]);
}

json saving_json(const advise_report& all, const saving& s) {
  if (!s.failure.empty() || s.as_is.empty()) return nullptr;
  const median_estimate time = s.time().value_or(median_estimate{});
  return {{"seconds", time.median},
          {"seconds_low", time.low},
          {"seconds_high", time.high},
          {"of_malloc", s.of_malloc(time.median)},
          {"of_recorded_run", part_of(time.median, all.program_seconds())},
          {"peak_bytes", s.bytes()},
          {"of_peak", part_of(static_cast<double>(s.bytes()), static_cast<double>(s.peak_as_is))},
          {"sentence", fmt::format("Saves {}.", savings_text(all, s))}};
}

json site_json(const program_site& site) {
  const auto or_null = [](const std::string& text) { return text.empty() ? json(nullptr) : json(text); };
  return {{"function", site.function},
          {"file", or_null(site.file)},
          {"line", site.file.empty() ? json(nullptr) : json(site.line)},
          {"module", site.module},
          {"through", or_null(site.through)},
          {"container", or_null(site.container)},
          {"name", site.name()}};
}

json report_json(const advise_report& all) {
  json result = {{"trace", all.trace},
                 {"command", all.process.described.arguments},
                 {"process", all.process.described.number},
                 {"allocations", all.habits.allocations},
                 {"live_peak_bytes", all.habits.live_peak},
                 {"sites", all.habits.sites.size()},
                 {"recorded_seconds", all.program_seconds()},
                 {"malloc_seconds", all.seconds_as_is},
                 {"peak_bytes", all.peak_as_is},
                 {"rounds", all.rounds}};
  json& advised = result["advice"] = json::array();
  for (const given_advice& one : all.all) {
    const site_habits& does = all.habits.sites[one.what.site - 1U];
    advised.push_back({{"kind", one.what.name()},
                       {"site", site_json(all.sites[one.what.site])},
                       {"allocations", does.allocations},
                       {"bytes", does.bytes},
                       {"live_peak_bytes", does.live_peak},
                       {"seen", one.what.seen},
                       {"part", one.what.part()},
                       {"is_worth_it", one.saves.as_is.empty() ? json(nullptr) : json(one.saves.is_worth_it())},
                       {"saves", saving_json(all, one.saves)},
                       {"failure", one.saves.failure.empty() ? json(nullptr) : json(one.saves.failure)},
                       {"code", one.code}});
  }
  result["together"] = all.together ? saving_json(all, *all.together) : json(nullptr);
  json& notes = result["notes"] = json::array();
  if (const std::string torn = all.torn_note(); !torn.empty()) notes.push_back(torn);
  for (const std::string& note : all.notes) notes.push_back(note);
  return result;
}

/// "for a std::string, through std::map<...>::operator[]": what allocates at the line.
std::string through(const program_site& site) {
  const std::string whose = site.container.empty() ? "" : fmt::format("for a {}, ", site.container);
  return printable(fmt::format("{}through {}", whose, site.through));
}

std::string heading(const advise_report& all, unsigned columns) {
  const traced_process& p = all.process;
  std::string text =
      lines_of(fmt::format("process {} of {}: {}", p.described.number, all.trace, command_of(all)), 0, columns);
  std::string line =
      fmt::format("{} at {} by {} in {}, live at most {}", show_count_of(all.habits.allocations, "allocation"),
                  show_count_of(all.habits.sites.size(), "call site"), show_count_of(all.plan.threads, "thread"),
                  show_seconds(all.program_seconds()), show_bytes(static_cast<double>(all.habits.live_peak)));
  // A replay of a short program can take longer than the program.
  const std::string share =
      all.seconds_as_is < all.program_seconds()
          ? fmt::format(" ({} of the recorded run)", show_part(all.seconds_as_is, all.program_seconds()))
          : "";
  if (all.seconds_as_is > 0)
    line += fmt::format("; under glibc {} in malloc{}, and a peak of {}", show_seconds(all.seconds_as_is), share,
                        show_bytes(static_cast<double>(all.peak_as_is)));
  return text + lines_of(line, 0, columns);
}

}  // namespace

double saving::of_malloc(double seconds) const { return as_is.empty() ? 0 : part_of(seconds, median(as_is)); }

bool saving::is_worth_it() const {
  constexpr double least = 0.01;
  constexpr std::int64_t least_bytes = 64 << 10;
  if (!failure.empty() || as_is.empty()) return false;
  const auto seconds = time();
  const bool saves_time = seconds && seconds->low > 0 && of_malloc(seconds->median) >= least;
  return saves_time ||
         (bytes() >= least_bytes && static_cast<double>(bytes()) >= least * static_cast<double>(peak_as_is));
}

std::string advise_report::torn_note() const {
  if (!process.ended.is_torn) return "";
  return fmt::format("the trace is {}; what the program does after its last event is not known", process.ended.reason);
}

double advise_report::gain(const saving& of) const {
  if (of.as_is.empty()) return -1;
  return std::max(part_of(of.seconds(), program_seconds()),
                  part_of(static_cast<double>(of.bytes()), static_cast<double>(of.peak_as_is)));
}

void advise_report::sort() {
  std::ranges::stable_sort(all, [&](const given_advice& a, const given_advice& b) {
    if (a.saves.is_worth_it() != b.saves.is_worth_it()) return a.saves.is_worth_it();
    return gain(a.saves) > gain(b.saves);
  });
}

std::string text_view(const advise_report& all, bool colour, unsigned columns) {
  const char* const bold = colour ? "\033[1m" : "";
  const char* const end = colour ? "\033[0m" : "";
  std::string text = heading(all, columns);
  if (const std::string torn = all.torn_note(); !torn.empty()) text += lines_of("Note: " + torn, 0, columns);
  unsigned number = 0;
  for (const given_advice& one : all.all) {
    if (one.is_unmeasured()) continue;
    const bool is_shown = one.saves.is_worth_it() || !one.what.can_be_replayed() || !one.saves.failure.empty();
    if (!is_shown) continue;
    const program_site& site = all.sites[one.what.site];
    text += fmt::format("\n{}{}  {}{}  at {}\n", bold, ++number, one.what.name(), end, site.name());
    if (!site.through.empty()) text += lines_of(through(site), 3, columns);
    text += lines_of(one.what.seen, 3, columns);
    if (!one.saves.failure.empty())
      text += lines_of("What it saves is not known: " + one.saves.failure, 3, columns);
    else if (!one.what.can_be_replayed())
      text += lines_of("What it saves is not predicted.", 3, columns);
    else
      text += lines_of(fmt::format("Saves {}.", savings_text(all, one.saves)), 3, columns);
    text += '\n';
    for (const std::string& line : one.code) text += "       " + line + '\n';
  }
  const auto unmeasured = std::ranges::count_if(all.all, &given_advice::is_unmeasured);
  if (number == 0 && unmeasured == 0)
    text += "\nNo advice: no call site that matters does what a part of the kit is better at.\n";
  if (all.together)
    text += '\n' +
            lines_of(fmt::format("All at once, measured and not added up: saves {}.", savings_text(all, *all.together)),
                     0, columns);
  const auto little = std::ranges::count_if(all.all, [](const given_advice& one) {
    return one.what.can_be_replayed() && one.saves.failure.empty() && !one.saves.is_worth_it() && !one.is_unmeasured();
  });
  if (unmeasured > 0)
    text += '\n' + lines_of(fmt::format("{} site{} {} a rule, and what that would save was not measured.", unmeasured,
                                        unmeasured == 1 ? "" : "s", unmeasured == 1 ? "fits" : "fit"),
                            0, columns);
  if (little > 0)
    text += '\n' + lines_of(fmt::format(
                                "{} {}site{} fitted a rule, and would save less than 1 % of the time in malloc, "
                                "or nothing beyond noise, and of the peak less than 1 % or 64 KiB (--json has "
                                "{}).",
                                little, number > 0 ? "more " : "", little == 1 ? "" : "s", little == 1 ? "it" : "them"),
                            0, columns);
  if (number > 0 && all.rounds > 0)
    text += '\n' +
            lines_of(
                fmt::format("Saved time: median of {} interleaved rounds; in brackets its interval. Recording slows a "
                            "program, so of its own time it is more. Each saving is a share of what malloc took in its "
                            "own rounds, which differs a little from those of others.",
                            all.rounds),
                0, columns);
  for (const std::string& note : all.notes) text += lines_of("Note: " + note, 0, columns);
  return text;
}

std::string json_view(const advise_report& all) {
  return report_json(all).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string page_view(const advise_report& all) {
  json data = report_json(all);
  data["heapwright"] = HEAPWRIGHT_VERSION;
  data["is_torn"] = all.process.ended.is_torn;
  return page_with_data(advise_page, data.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace heapwright::tool
