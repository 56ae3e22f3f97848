// The processes of one command while they run under one preload: started, watched, measured, ended.
//
// Problem     a figure must count every process of the command, and no other. All of them descend
//             from this process, which adopts orphans.
// States      running -> first process has ended -> finished (no process is left)
// Invariant   every process that descends from this one belongs to the tree, except the one that
//             is set aside and its descendants. Destruction ends them all.
//
// measured_run.hpp says how each figure comes about.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "descriptor.hpp"
#include "measured_run.hpp"
#include "process_tree.hpp"

namespace heapwright::tool {

/// Seconds on the monotonic clock, which deadlines are moments of.
double now();

inline constexpr double never = 1e300;

class measured_tree {
 public:
  /// Starts the command. `signals` has SIGCHLD.
  measured_tree(const job& what, const awaited_signals& signals);
  measured_tree(const measured_tree&) = delete;
  measured_tree& operator=(const measured_tree&) = delete;
  ~measured_tree();

  /// Samples memory until the first process has ended, `is_done` says so, or the deadline comes.
  /// `is_done` is asked every few milliseconds. Throws `interrupted` for an awaited signal.
  void watch(double deadline, const std::function<bool()>& is_done = {});

  [[nodiscard]] bool has_ended() const noexcept { return first_ended_; }

  /// What is known so far. Its status counts once the first process has ended.
  [[nodiscard]] const run_result& result() const noexcept { return result_; }

  /// A child of this process, with all that descends from it, is no part of the tree.
  void set_aside(pid_t child) noexcept {
    aside_ = child;
    aside_ended_ = false;
  }
  [[nodiscard]] bool aside_has_ended() const noexcept { return aside_ended_; }

  [[nodiscard]] std::vector<tree_member> members() const { return descendants(aside_); }
  /// Bytes that all processes have resident at this moment. The heap at the end is that of now.
  std::uint64_t resident_at_end();

  /// Watches until nothing changes for a while: in several looks, 50 ms apart, there are the same
  /// processes, with the same memory within 1 %. Ends at the deadline, and when the first process
  /// has ended. Returns the bytes that all processes had resident at the last look at which the
  /// first one still ran, or 0 if it ran at none. Throws `interrupted` for an awaited signal.
  std::uint64_t settle(double deadline);

  /// SIGTERM for the first process.
  void ask_to_end() const;

  /// Kills what is left. Throws `failure` if the command could not be executed.
  run_result finish();

 private:
  struct departure;

  void launch();
  [[noreturn]] void become_command(pipe_ends& gate);
  void reap();
  void resume(int status);
  void account(const rusage& usage);
  void raise_peak(std::uint64_t bytes);
  void sample(const std::vector<tree_member>& seen);
  void look_at_heap();
  void look_into(pid_t pid);
  [[nodiscard]] bool has_departed() const;
  void end_all();

  const job& what_;
  const awaited_signals& signals_;
  departure* departure_;
  pid_t first_ = -1;
  bool first_ended_ = false;
  pid_t aside_ = 0;
  bool aside_ended_ = false;
  double held_seconds_ = 0;
  double next_sample_ = 0;
  struct heap_of_process {
    pid_t of;
    recipe_evidence heap;
    std::string ran;  ///< by its first thread, if that wants a processor
  };
  std::optional<heap_of_process> unconfirmed_;  ///< whether the process frees just now is not known yet
  std::uint64_t next_heap_rss_ = 0;             ///< a process that has so much resident has its heap read again
  std::set<std::pair<pid_t, ino_t>> looked_into_;
  run_result result_;
};

}  // namespace heapwright::tool
