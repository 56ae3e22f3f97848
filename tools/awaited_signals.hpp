// Signals that a subcommand waits for instead of handling them: nothing is interrupted, and one
// loop sees all that happens.
//
// What it starts meanwhile gets them as they were: a child calls restore() before it becomes
// another program.
//
// A shell without job control starts `command &` with SIGINT ignored: ctrl-C at the terminal is
// then meant for others, and a SIGINT that is sent to this process is meant for it. nohup starts a
// command with SIGHUP ignored: that stays ignored, sent or not, since shells send it when they end.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>

namespace heapwright::tool {

struct came_signal {
  int number = 0;
  /// The terminal sends ctrl-C to all processes in its foreground: those that this one has started
  /// have it too.
  bool is_from_terminal = false;
};

[[nodiscard]] bool is_ignored_from_start(int signal) noexcept;

/// Whether a signal that came is meant for this process. Async-signal-safe.
[[nodiscard]] bool is_meant_for_us(const siginfo_t& came) noexcept;

/// Blocked in the constructing thread, and in those it starts afterwards, for as long as this
/// lives. To be made before any other thread: one that does not block a signal takes it.
class awaited_signals {
 public:
  awaited_signals(std::initializer_list<int> which);
  awaited_signals(const awaited_signals&) = delete;
  awaited_signals& operator=(const awaited_signals&) = delete;
  ~awaited_signals() { put_back(); }

  /// In a child.
  void restore() const;

  /// The signal that came; number 0 if none does within the given seconds, or for ever.
  [[nodiscard]] came_signal wait(std::optional<double> at_most_seconds) const;

  [[nodiscard]] const sigset_t& set() const noexcept { return set_; }

 private:
  void put_back() const;

  sigset_t set_{};
  sigset_t before_{};
  void (*before_of_children_)(int) = nullptr;  ///< only if SIGCHLD is one of them
};

/// Ends this process by the signal, without a core dump. Returns what a shell would say where it
/// cannot: the first process of a container ignores signals.
int end_by_signal(int signal);

}  // namespace heapwright::tool
