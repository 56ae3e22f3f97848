// `heapwright replay`: what if this program had run on another malloc.
//
//   plan     the trace as operations, in a scratch file (plan_builder)
//   memory   once under each malloc, in turns
//   count    asked for, once under each malloc, in turns, by callgrind
//   time     in interleaved rounds, at full speed, and once in each round without any malloc
//
// Each replay is a process of its own, measured like a command of `compare`: it must be seen to run
// on the malloc that it was given. Interrupted, it tells of the rounds that are complete.
#include "replay.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "awaited_signals.hpp"
#include "failure.hpp"
#include "given_allocators.hpp"
#include "output_file.hpp"
#include "replay_report.hpp"
#include "replay_runs.hpp"
#include "scratch_file.hpp"
#include "terminal.hpp"
#include "trace_progress.hpp"

namespace heapwright::tool {
namespace {

void measure(const replay_runs& by, const replay_options& options, replay_report& into) {
  try {
    for (std::size_t i = 0; i < into.rows.size() && !options.only_time; ++i) {
      show_step(fmt::format("memory under {}: {} of {}", into.rows[i].who.name, i + 1, into.rows.size()));
      by.measure_memory(into.rows[i]);
    }
    if (options.counts)
      by.count_instructions(into.rows,
                            [](const std::string& name) { show_step("counting instructions under " + name); });
    if (options.only_memory) return;
    for (; into.rounds < options.rounds; ++into.rounds) {
      by.measure_time(into.rows, into.rounds, [&](const std::string& name) {
        show_step(fmt::format("time under {}: round {} of {}", name, into.rounds + 1, options.rounds));
      });
    }
  } catch (const interrupted& by_signal) {
    show_step("");
    const bool has_memory = std::ranges::any_of(into.rows, [](const replay_row& row) { return !row.moments.empty(); });
    if (!has_memory && into.rounds == 0) {
      tell("heapwright: interrupted before a replay was complete: nothing is known\n");
      throw;
    }
    into.interrupted_by = by_signal.signal;
    for (replay_row& row : into.rows)
      if (row.rounds.size() > into.rounds) row.rounds.resize(into.rounds);
    into.notes.push_back(fmt::format("interrupted by SIG{} after {} of {} rounds", sigabbrev_np(by_signal.signal),
                                     into.rounds, options.rounds));
  }
}

void add_notes(replay_report& into, bool is_chosen) {
  const plan_summary& plan = into.plan;
  if (const std::string others = into.process.note_on_others(is_chosen); !others.empty()) into.notes.push_back(others);
  const trace::ending& ended = into.process.ended;
  if (ended.is_torn || ended.is_piece) into.notes.push_back("the trace is " + ended.reason);
  if (plan.left_out > 0) into.notes.push_back(into.process.note_on_left_out(plan.left_out));
  if (const std::string why = into.why_no_prediction(); !why.empty() && into.interrupted_by == 0)
    into.notes.push_back(why);
}

void check_outputs(const replay_options& options) {
  std::vector<std::string> needed{options.trace};
  for (const std::string& word : options.with) needed.push_back(given_path::parse(word).path);
  check_json_and_html(options.json, options.html, needed);
}

}  // namespace

int replay(const replay_options& options) {
  check_outputs(options);
  if (options.counts) replay_runs::check_valgrind();
  const given_allocators given("replay", options.with);
  const program target = program::resolve({replay_runs::replayer()});
  replay_report found;
  found.rows.push_back({{"glibc", ""}});
  for (const allocator& who : choose_allocators(target, given.all(), options.only)) found.rows.push_back({who});

  const awaited_signals signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  plan_builder builder(options.trace, options.process, trace_progress("reading the trace", signals));
  scratch_file plan;
  found.trace = options.trace;
  found.plan = builder.build(plan.fd(), trace_progress("planning the replay", signals), options.touch_all);
  found.process = builder.process();
  measure(replay_runs(plan, signals), options, found);
  show_step("");
  add_notes(found, options.process.has_value());

  std::vector<std::pair<std::string, std::string>> outputs;
  if (!options.json.empty()) outputs.emplace_back(options.json, json_view(found));
  if (!options.html.empty()) outputs.emplace_back(options.html, page_view(found));
  if (options.json != "-" && options.html != "-")
    outputs.emplace_back("-", table_view(found, wants_colour(STDOUT_FILENO), columns_of(STDOUT_FILENO)));
  write_outputs(outputs, exit_code::judged_no);
  if (found.interrupted_by != 0) throw interrupted{found.interrupted_by};
  const bool all_well = std::ranges::all_of(found.rows, [](const replay_row& row) { return row.failure.empty(); });
  return all_well ? EXIT_SUCCESS : exit_code::judged_no;
}

}  // namespace heapwright::tool
