// `heapwright replay`: what if this program had run on another malloc.
//
//   plan     the trace as operations, in a scratch file (plan_builder)
//   memory   once under each malloc, in turns
//   time     in interleaved rounds, at full speed, and once in each round without any malloc
//
// Each replay is a process of its own, measured like a command of `compare`: it must be seen to run
// on the malloc that it was given. Interrupted, it tells of the rounds that are complete.
#include "replay.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <sys/personality.h>
#include <unistd.h>

#include "awaited_signals.hpp"
#include "failure.hpp"
#include "given_allocators.hpp"
#include "loader.hpp"
#include "measured_run.hpp"
#include "output_file.hpp"
#include "replay_report.hpp"
#include "scratch_file.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

/// What heapwright-replayer has printed.
struct replayer_figures {
  std::vector<memory_moment> moments;
  std::uint64_t final_bytes = 0, wall_ns = 0, processor_ns = 0, page_faults = 0;
  std::optional<std::uint64_t> memory_calls;
};

replayer_figures read_figures(const std::string& output) {
  replayer_figures all;
  std::istringstream lines(output);
  for (std::string word; lines >> word;) {
    if (word == "measured") {
      memory_moment m{};
      lines >> m.at_ns >> m.live >> m.bytes;
      all.moments.push_back(m);
      continue;
    }
    std::string name;
    std::uint64_t value = 0;
    lines >> name >> value;
    if (name == "final_bytes") all.final_bytes = value;
    if (name == "wall_ns") all.wall_ns = value;
    if (name == "processor_ns") all.processor_ns = value;
    if (name == "page_faults") all.page_faults = value;
    if (name == "memory_calls") all.memory_calls = value;
  }
  return all;
}

class replays {
 public:
  replays(std::string replayer, const scratch_file& plan, const awaited_signals& signals)
      : replayer_(std::move(replayer)), plan_(fmt::format("/proc/{}/fd/{}", getpid(), plan.fd())), signals_(signals) {}

  /// Nothing: it has failed, and the row says why.
  std::optional<replayer_figures> run(replay_row& row, const char* how) const {
    const run_result ran =
        run_measured({{replayer_, plan_, how}, preload_value(row.who.library), nullptr, 0}, signals_);
    row.failure = ran.trouble();
    if (const std::string said = ran.errors.tail(3); !row.failure.empty() && !said.empty())
      row.failure += "; its last words: " + said;
    const bool is_proven = row.who.library.empty() || is_same(ran.main_malloc, row.who.library);
    if (row.failure.empty() && !is_proven)
      row.failure = ran.main_malloc.empty()
                        ? "ran, but on which malloc could not be seen (may ptrace(2) be forbidden here?)"
                        : fmt::format("ran on the malloc of {}", ran.main_malloc);
    if (!row.failure.empty()) return std::nullopt;
    return read_figures(ran.output.content());
  }

  /// Processor time of the replay itself, in nanoseconds.
  [[nodiscard]] std::uint64_t own_time() const {
    replay_row nobody;
    const auto figures = run(nobody, "nothing");
    if (!figures) throw failure(exit_code::judged_no, "the replay without a malloc failed: " + nobody.failure);
    return figures->processor_ns;
  }

 private:
  static bool is_same(const std::string& a, const std::string& b) {
    std::error_code error;
    return a == b || std::filesystem::equivalent(a, b, error);
  }

  std::string replayer_, plan_;
  const awaited_signals& signals_;
};

/// Of replays in turns: what a malloc does goes by addresses, too. Containers may forbid it.
class fixed_addresses {
 public:
  fixed_addresses() : before_(personality(asked)) {
    if (before_ >= 0) (void)personality(static_cast<unsigned>(before_) | ADDR_NO_RANDOMIZE);
  }
  fixed_addresses(const fixed_addresses&) = delete;
  fixed_addresses& operator=(const fixed_addresses&) = delete;
  ~fixed_addresses() {
    if (before_ >= 0) (void)personality(static_cast<unsigned>(before_));
  }

 private:
  static constexpr unsigned long asked = 0xFFFFFFFF;  // changes nothing
  int before_;
};

void replay_memory(const replays& by, replay_report& into) {
  const fixed_addresses guard;
  for (std::size_t i = 0; i < into.rows.size(); ++i) {
    replay_row& row = into.rows[i];
    show_step(fmt::format("memory under {}: {} of {}", row.who.name, i + 1, into.rows.size()));
    auto figures = by.run(row, "turns");
    if (!figures) continue;
    row.moments = std::move(figures->moments);
    row.final_bytes = figures->final_bytes;
    row.page_faults = figures->page_faults;
    row.memory_calls = figures->memory_calls;
  }
}

void replay_time_once(const replays& by, replay_report& into, unsigned round, unsigned rounds) {
  const auto count = static_cast<unsigned>(into.rows.size());
  const std::uint64_t own = by.own_time();
  for (const unsigned i : order_of_round(round, count)) {
    replay_row& row = into.rows[i];
    if (!row.failure.empty()) continue;
    show_step(fmt::format("time under {}: round {} of {}", row.who.name, round + 1, rounds));
    const auto figures = by.run(row, "speed");
    if (!figures) continue;
    const std::uint64_t in_malloc = figures->processor_ns - std::min(figures->processor_ns, own);
    row.rounds.push_back({static_cast<double>(in_malloc) / 1e9, static_cast<double>(figures->wall_ns) / 1e9});
    if (row.moments.empty()) row.page_faults = figures->page_faults;
  }
}

void measure(const replays& by, const replay_options& options, replay_report& into) {
  try {
    if (!options.only_time) replay_memory(by, into);
    if (options.only_memory) return;
    for (; into.rounds < options.rounds; ++into.rounds) replay_time_once(by, into, into.rounds, options.rounds);
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

void add_notes(replay_report& into) {
  const plan_summary& plan = into.plan;
  if (into.process.ended.is_torn) into.notes.push_back("the trace is torn: " + into.process.ended.reason);
  if (plan.left_out > 0)
    into.notes.push_back(fmt::format("{} frees of blocks from before the recording are left out", plan.left_out));
}

/// A line that is told again when a part of a hundred more is done.
plan_builder::progress telling(const char* what, const awaited_signals& signals) {
  return [what, &signals, shown = -1](double done) mutable {
    const int percent = static_cast<int>(done * 100);
    if (percent == shown) return;
    shown = percent;
    show_step(fmt::format("{}: {} %", what, percent));
    if (const came_signal came = signals.wait(0); came.number != 0 && came.number != SIGCHLD)
      throw interrupted{came.number};
  };
}

void check_outputs(const replay_options& options) {
  std::vector<std::string> needed{options.trace};
  for (const std::string& word : options.with) needed.push_back(given_path::parse(word).path);
  for (const auto& [option, file] : {std::pair{"--json", options.json}, std::pair{"--html", options.html}}) {
    check_replaces_none(option, file, needed);
    check_writable(file);
  }
  if (!options.json.empty() && !options.html.empty() &&
      (options.json == options.html ||
       (options.json != "-" && options.html != "-" && lead_to_one_file(options.json, options.html))))
    throw failure(exit_code::bad_input, fmt::format("--json and --html both go to {}", options.json));
}

}  // namespace

int replay(const replay_options& options) {
  check_outputs(options);
  const std::string replayer = own_helper("heapwright-replayer");
  if (replayer.empty())
    throw failure(exit_code::bad_input, "heapwright-replayer, which replays a trace, is not here; install it again");
  const given_allocators given("replay", options.with);
  const program target = program::resolve({replayer});
  replay_report found;
  found.rows.push_back({{"glibc", ""}});
  for (const allocator& who : choose_allocators(target, given.all(), options.only)) found.rows.push_back({who});

  const awaited_signals signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  plan_builder builder(options.trace, options.process, telling("reading the trace", signals));
  scratch_file plan;
  found.trace = options.trace;
  found.plan = builder.build(plan.fd(), telling("planning the replay", signals), options.touch_all);
  found.process = builder.process();
  measure(replays(replayer, plan, signals), options, found);
  show_step("");
  add_notes(found);

  std::vector<std::pair<std::string, std::string>> outputs;
  if (!options.json.empty()) outputs.emplace_back(options.json, json_view(found));
  if (!options.html.empty()) outputs.emplace_back(options.html, page_view(found));
  if (options.json != "-" && options.html != "-")
    outputs.emplace_back("-", table_view(found, wants_colour(STDOUT_FILENO)));
  write_outputs(outputs, exit_code::judged_no);
  if (found.interrupted_by != 0) throw interrupted{found.interrupted_by};
  const bool all_well = std::ranges::all_of(found.rows, [](const replay_row& row) { return row.failure.empty(); });
  return all_well ? EXIT_SUCCESS : exit_code::judged_no;
}

}  // namespace heapwright::tool
