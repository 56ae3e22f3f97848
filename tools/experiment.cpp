// The rows of the comparison are the state: each run adds a measurement to its row, or the reason
// why the row has none.
#include "experiment.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>

#include "elf_file.hpp"
#include "failure.hpp"
#include "interruptible.hpp"
#include "loader.hpp"

namespace heapwright::tool {
namespace {

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

std::string base_name(const std::string& path) { return std::filesystem::path(path).filename(); }

/// Whether the LD_PRELOAD of this process names the library.
bool is_preloaded(const std::string& library) {
  std::string words = preload_value("");
  std::ranges::replace(words, ':', ' ');
  std::istringstream input(words);
  return std::any_of(std::istream_iterator<std::string>(input), {}, [&](const std::string& word) {
    return same_file(word, library) || base_name(word) == base_name(library);
  });
}

class running_experiment {
 public:
  explicit running_experiment(const experiment& plan) : plan_(plan) {
    result_.command = plan.command;
    result_.server = plan.server;
    result_.started = local_time();
    result_.machine = machine_description::of_this_one();
    result_.tolerance = plan.tolerance;
  }

  comparison finish() {
    try {
      warm_up();
      for (; result_.rounds < plan_.rounds; ++result_.rounds)
        for (const unsigned i : order_of_round(result_.rounds, static_cast<unsigned>(result_.rows.size())))
          run(i, result_.rounds + 1);
    } catch (const interrupted& by) {
      if (result_.rounds == 0) throw interrupted_early{{by.signal}, std::move(result_.rows)};
      keep_complete_rounds(by.signal);
    }
    for (comparison_row& row : result_.rows)
      if (!row.who.recipe.empty()) row.who.library.clear();  // It goes away with the comparison.
    judge_differences();
    choose_baseline();
    tell_of_missing_ratios();
    result_.notes.insert(result_.notes.end(), remarks_.begin(), remarks_.end());
    return std::move(result_);
  }

 private:
  /// The first run leaves the program as it is and shows which malloc each of its processes has.
  /// Where that is glibc's throughout, it has been glibc's warm-up. Otherwise glibc is put under it
  /// like any other allocator, and the program as built gets a row of its own.
  void warm_up() {
    total_ = (plan_.rounds + 1) * static_cast<unsigned>(plan_.candidates.size() + 1);
    result_.rows.push_back({{"glibc", ""}, "", {}, "", ""});
    const auto first = run(0, 0);
    std::map<std::string, std::set<std::string>> bringers;
    for (const seen_process& p : first)
      if (!is_libc(p.malloc) && !same_file(p.executable, p.malloc))
        bringers[base_name(p.malloc)].insert(is_preloaded(p.malloc) ? "LD_PRELOAD" : p.name);
    if (!bringers.empty()) {
      std::vector<std::string> brought;
      for (const auto& [library, programs] : bringers)
        brought.push_back(fmt::format("{} by {}", library, fmt::join(programs, ", ")));
      total_ += plan_.rounds + 1;
      result_.rows.push_back(
          {{"as built", ""}, fmt::format("brought along: {}", fmt::join(brought, "; ")), {}, "", ""});
      result_.rows.front().who.library = libc_of_target();
      result_.rows.front().remark = "by preloading " + base_name(result_.rows.front().who.library);
      reference_.reset();
      run(0, 0);
    }
    for (const allocator& who : plan_.candidates) {
      result_.rows.push_back({who, who.recipe.empty() ? "" : "made from the recipe " + who.recipe, {}, "", ""});
      run(static_cast<unsigned>(result_.rows.size()) - 1, 0);
    }
  }

  static std::string of_command(std::string trouble) {
    if (trouble.starts_with("exited with status"))
      trouble.insert(std::min(trouble.find(';'), trouble.size()),
                     " (it must end with 0; sh -c 'COMMAND; true' does where that status is no failure)");
    return "the command " + trouble;
  }

  /// The processes seen in the run.
  std::set<seen_process> run(unsigned index, unsigned round) {
    comparison_row& row = result_.rows[index];
    if (!row.failure.empty()) return {};
    plan_.progress(done_++, total_, round, row.who.name);
    interruptible::throw_if_noted();  // Nobody reads the progress.
    const std::string preload = preload_value(row.who.library);
    const job what{plan_.command, preload, plan_.input, plan_.timeout_seconds, round == 0};
    run_result ran = plan_.server ? serve(row, what) : run_measured(what, signals_);
    if (row.failure.empty()) row.failure = complaint_about(row, ran);
    if (!row.failure.empty()) {
      total_ -= plan_.rounds - round;
      if (index == 0)
        throw failure(exit_code::judged_no, "under glibc, " + (plan_.server ? row.failure : of_command(row.failure)));
      return {};
    }
    for (const seen_process& process : ran.seen) note_if_unreachable(row, process);
    if (round > 0)
      row.rounds.push_back(ran.figures);
    else
      row.findings = findings_of(ran, plan_.server.has_value());
    if (plan_.compare_output && !plan_.server) compare_output(row, index, round, std::move(ran.output));
    return std::move(ran.seen);
  }

  run_result serve(comparison_row& row, const job& what) {
    server_result served = run_server(what, *plan_.server, signals_);
    row.failure = std::move(served.trouble);
    if (served.was_killed) {
      const std::string how =
          fmt::format("did not end within {:g} s of SIGTERM and was killed", plan_.server->end_limit_seconds);
      if (row.failure.empty())
        remarks_.insert(fmt::format("under {}, the server {}", row.who.name, how));
      else
        row.failure += fmt::format("; it {}", how);
    }
    return std::move(served.run);
  }

  /// Why a run does not count; empty if it does.
  [[nodiscard]] std::string complaint_about(const comparison_row& row, const run_result& ran) const {
    // How a server ends is judged by then.
    if (std::string trouble = plan_.server ? "" : ran.trouble(); !trouble.empty()) {
      if (const std::string said = ran.errors.tail(3); !said.empty()) trouble += "; its last words: " + said;
      if (!ran.output.has_room())
        trouble += fmt::format("; {}, where its output goes, is full: name another folder in TMPDIR", scratch_place());
      return trouble;
    }
    if (row.who.library.empty()) return {};
    if (ran.main_malloc.empty())
      return fmt::format("ran, but it could not be verified that {} was in it (may ptrace(2) be forbidden here?)",
                         row.who.library);
    if (!same_file(ran.main_malloc, row.who.library))
      return fmt::format("ran, but not on {}: its malloc was that of {}", row.who.library, ran.main_malloc);
    return {};
  }

  /// Helper processes may be out of reach of a preload; the reader must know, for their share is no
  /// allocator's doing.
  void note_if_unreachable(const comparison_row& row, const seen_process& process) {
    if (!same_file(process.executable, process.malloc)) {
      if (!row.who.library.empty() && !same_file(process.malloc, row.who.library))
        remarks_.insert(fmt::format("under {}, {} used the malloc of {}", row.who.name, process.name, process.malloc));
      return;
    }
    const auto elf = elf_file::open(process.executable);
    const bool is_static = elf && elf->loader().empty();
    remarks_.insert(fmt::format("{} {}: it ran on its own malloc under every allocator", process.executable,
                                is_static ? "is statically linked" : "defines malloc itself"));
  }

  void compare_output(comparison_row& row, unsigned index, unsigned round, scratch_file output) {
    if (!reference_) {
      reference_.emplace(std::move(output));
      return;
    }
    const auto found = first_difference(*reference_, output);
    if (!found || !row.difference.empty()) return;
    row.difference = fmt::format("its output differs from glibc's ({}, line {}): {} instead of {}",
                                 round == 0 ? "warm-up" : fmt::format("round {}", round), found->line, found->found,
                                 found->expected);
    if (index == 0) deterministic_ = false;
  }

  /// Only against a command that always prints the same can an allocator's output be held.
  void judge_differences() {
    if (deterministic_) return;
    for (comparison_row& row : result_.rows) row.difference.clear();
    result_.notes.push_back(
        "two runs under glibc already printed different outputs, so outputs were not compared; "
        "--ignore-output silences this");
  }

  void keep_complete_rounds(int signal) {
    result_.interrupted_by = signal;
    for (comparison_row& row : result_.rows)
      if (row.rounds.size() > result_.rounds) row.rounds.resize(result_.rounds);
    result_.notes.push_back(
        fmt::format("interrupted by SIG{} after {} of {} rounds", sigabbrev_np(signal), result_.rounds, plan_.rounds));
  }

  /// A ratio is of logarithms.
  void tell_of_missing_ratios() {
    if (result_.rounds < 2) return;
    for (const metric& figure : metrics_of(result_)) {
      for (const comparison_row& row : result_.rows) {
        const auto found = summarise(result_, row, figure);
        if (!figure.is_from_driver || !found || found->to_baseline || &row == &result_.base()) continue;
        result_.notes.push_back(
            fmt::format("{} has no ratio: in some round it is 0 or less, where a ratio says nothing", figure.title));
        break;
      }
    }
  }

  void choose_baseline() {
    const auto found =
        std::ranges::find(result_.rows, plan_.baseline, [](const comparison_row& r) { return r.who.name; });
    if (found == result_.rows.end()) {
      result_.notes.push_back(fmt::format("there is no row {}; ratios are to glibc", plan_.baseline));
    } else if (!found->failure.empty()) {
      result_.notes.push_back(fmt::format("{} failed; ratios are to glibc", plan_.baseline));
    } else {
      result_.baseline = static_cast<std::size_t>(found - result_.rows.begin());
    }
  }

  [[nodiscard]] std::string libc_of_target() const {
    const listing loaded = ask_loader(plan_.target, "");
    const auto found = std::find_if(loaded.objects.begin(), loaded.objects.end(), is_libc);
    if (found == loaded.objects.end())
      throw failure(exit_code::bad_input, fmt::format("{} does not use glibc", plan_.target.path));
    return *found;
  }

  const experiment& plan_;
  const awaited_signals signals_{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  comparison result_;
  std::optional<scratch_file> reference_;  ///< what the first run under glibc printed
  std::set<std::string> remarks_;          ///< become notes, each once
  bool deterministic_ = true;
  unsigned done_ = 0;
  unsigned total_ = 0;
};

}  // namespace

comparison carry_out(const experiment& plan) { return running_experiment(plan).finish(); }

}  // namespace heapwright::tool
