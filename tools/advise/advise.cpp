// `heapwright advise`: what the kit could do for a program.
//
//   look      the plan of its trace, with call sites, and what the blocks of each do (site_habits)
//   advise    the rules that fit (advice_rules)
//   measure   the plan beside the plan as advised, in interleaved rounds: time, and peak memory;
//             then all that is worth it at once
//
// Interrupted, it tells what is measured by then.
#include "advise.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "advice_code.hpp"
#include "advise_report.hpp"
#include "advised_plan.hpp"
#include "awaited_signals.hpp"
#include "failure.hpp"
#include "mapped_plan.hpp"
#include "output_file.hpp"
#include "printable.hpp"
#include "replay_runs.hpp"
#include "scratch_file.hpp"
#include "terminal.hpp"
#include "trace_progress.hpp"

namespace heapwright::tool {
namespace {

class measuring {
 public:
  measuring(const scratch_file& plan, const mapped_plan& mapped, const awaited_signals& signals, unsigned rounds)
      : runs_(plan, signals), mapped_(mapped), rounds_(rounds) {}

  /// As it is. Throws `failure` if that cannot be replayed.
  void begin() {
    show_step("memory as it is");
    runs_.measure_memory(as_is_);
    if (!as_is_.failure.empty())
      throw failure(exit_code::judged_no, "the trace cannot be replayed under glibc: " + as_is_.failure);
    peak_ = peak_of(as_is_);
  }

  [[nodiscard]] std::uint64_t peak() const noexcept { return peak_; }
  /// In malloc, as it is: of all rounds so far.
  [[nodiscard]] double seconds() const { return seconds_.empty() ? 0 : median(seconds_); }

  /// Interrupted, `found` has the rounds that are complete.
  void measure(std::span<const advice> followed, const std::string& name, saving& found) {
    const scratch_file plan;
    write_advised_plan(mapped_, followed, plan);
    std::vector<replay_row> rows{{.who = as_is_.who}, {.who = {name, ""}, .plan = &plan}};
    show_step(fmt::format("memory: {}", name));
    runs_.measure_memory(rows[1]);
    try {
      for (unsigned round = 0; round < rounds_ && rows[1].failure.empty(); ++round) {
        runs_.measure_time(rows, round, [&](const std::string&) {
          show_step(fmt::format("time: {}, round {} of {}", name, round + 1, rounds_));
        });
      }
    } catch (const interrupted&) {
      note(rows, found);
      throw;
    }
    note(rows, found);
  }

 private:
  void note(const std::vector<replay_row>& rows, saving& found) {
    found.failure = rows[0].failure + rows[1].failure;
    if (!found.failure.empty()) return;
    const std::size_t complete = std::min(rows[0].rounds.size(), rows[1].rounds.size());
    if (complete < 2) return;  // says nothing of what differs by chance
    found.peak_as_is = peak_;
    found.peak_advised = peak_of(rows[1]);
    for (std::size_t i = 0; i < complete; ++i) {
      found.as_is.push_back(rows[0].rounds[i].allocator_seconds);
      found.advised.push_back(rows[1].rounds[i].allocator_seconds);
    }
    seconds_.insert(seconds_.end(), found.as_is.begin(), found.as_is.end());
  }

  static std::uint64_t peak_of(const replay_row& row) { return row.peak() == nullptr ? 0 : row.peak()->bytes; }

  const replay_runs runs_;
  const mapped_plan& mapped_;
  unsigned rounds_;
  replay_row as_is_{.who = {"glibc", ""}};
  std::uint64_t peak_ = 0;
  std::vector<double> seconds_;
};

void measure_all(measuring& by, advise_report& into) {
  try {
    by.begin();
    for (given_advice& one : into.all) {
      if (!one.what.can_be_replayed()) continue;
      const std::string name = fmt::format("{} at {}", one.what.name(), into.sites[one.what.site].name());
      by.measure({&one.what, 1}, name, one.saves);
    }
    into.sort();
    std::vector<advice> good;
    for (const given_advice& one : into.all)
      if (one.saves.is_worth_it() && good.size() < replay::operation::last_part) good.push_back(one.what);
    if (good.size() > 1) by.measure(good, "all at once", into.together.emplace());
  } catch (const interrupted& by_signal) {
    show_step("");
    into.interrupted_by = by_signal.signal;
    into.sort();
    // Of the one under way there are fewer rounds.
    into.rounds = 0;
    for (const given_advice& one : into.all)
      if (const auto its = static_cast<unsigned>(one.saves.as_is.size()); its > 0)
        into.rounds = into.rounds == 0 ? its : std::min(into.rounds, its);
    if (into.together && into.together->as_is.empty()) into.together.reset();
    into.notes.push_back(
        fmt::format("interrupted by SIG{}: not everything was measured", sigabbrev_np(by_signal.signal)));
  }
  into.peak_as_is = by.peak();
  into.seconds_as_is = by.seconds();
}

void add_notes(advise_report& into, bool is_chosen) {
  if (const std::string others = into.process.note_on_others(is_chosen); !others.empty()) into.notes.push_back(others);
  if (into.process.ended.is_piece && !into.process.ended.is_torn)
    into.notes.push_back("the trace is " + into.process.ended.reason);
  if (into.plan.left_out > 0) into.notes.push_back(into.process.note_on_left_out(into.plan.left_out));
  for (const std::string& pattern : into.sites.unused_wrappers)
    into.notes.push_back(fmt::format("--wrapper {}: no function that allocates, or is on the way to one, has that name",
                                     printable(pattern)));
  const bool has_lines =
      std::ranges::any_of(into.all, [&](const given_advice& one) { return !into.sites[one.what.site].file.empty(); });
  // A torn trace may lack what names the modules.
  if (!into.all.empty() && !has_lines && !into.process.ended.is_torn)
    into.notes.emplace_back("no site has a line: the program has no debugging information (-g)");
}

}  // namespace

int advise(const advise_options& options) {
  check_json_and_html(options.json, options.html, {options.trace});
  const awaited_signals signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  advise_report found;
  found.trace = options.trace;
  found.rounds = options.rounds;
  plan_builder builder(options.trace, options.process, trace_progress("reading the trace", signals));
  found.process = builder.process();
  show_step("naming call sites");
  found.sites = sites_of(options.trace, found.process.described.number, options.wrappers);
  const scratch_file plan;
  found.plan = builder.build(plan.fd(), trace_progress("planning the replay", signals), false, found.sites.stacks);
  const mapped_plan mapped(plan.fd());
  show_step("looking at what blocks do");
  found.habits = habits_of(mapped, found.sites.all.size());
  found.habits.is_torn = found.process.ended.is_torn;
  for (advice& one : advice_for(found.habits)) {
    const std::uint64_t threads = found.habits.sites[one.site - 1U].threads;
    std::vector<std::string> code = code_for(one, found.sites[one.site], threads);
    found.all.push_back({.what = std::move(one), .code = std::move(code), .saves = {}});
  }
  measuring by(plan, mapped, signals, options.rounds);
  measure_all(by, found);
  show_step("");
  add_notes(found, options.process.has_value());

  std::vector<std::pair<std::string, std::string>> outputs;
  if (!options.json.empty()) outputs.emplace_back(options.json, json_view(found));
  if (!options.html.empty()) outputs.emplace_back(options.html, page_view(found));
  if (options.json != "-" && options.html != "-")
    outputs.emplace_back("-", text_view(found, wants_colour(STDOUT_FILENO), columns_of(STDOUT_FILENO)));
  write_outputs(outputs, exit_code::judged_no);
  if (found.interrupted_by != 0) throw interrupted{found.interrupted_by};
  const bool all_well =
      std::ranges::all_of(found.all, [](const given_advice& one) { return one.saves.failure.empty(); });
  return all_well ? EXIT_SUCCESS : exit_code::judged_no;
}

}  // namespace heapwright::tool
