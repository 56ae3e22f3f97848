// Signals that a subcommand waits for instead of handling them: nothing is interrupted, and one loop sees all that happens.
#pragma once

#include <algorithm>
#include <csignal>
#include <ctime>
#include <initializer_list>

#include <sys/resource.h>

namespace heapwright::tool {

/// Blocked in the constructing thread, and in those it starts afterwards, for as long as this lives.
class awaited_signals {
 public:
  awaited_signals(std::initializer_list<int> which) {
    sigemptyset(&set_);
    for (const int s : which) sigaddset(&set_, s);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  awaited_signals(const awaited_signals&) = delete;
  awaited_signals& operator=(const awaited_signals&) = delete;
  ~awaited_signals() { restore(); }

  /// As it was before, for the child of a fork that becomes another program.
  void restore() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  /// The signal that came, or 0 after the given time.
  [[nodiscard]] int wait(double at_most_seconds) const {
    const double bounded = std::clamp(at_most_seconds, 0.0, 1e6);
    const auto whole = static_cast<time_t>(bounded);
    const timespec limit{whole, static_cast<long>((bounded - static_cast<double>(whole)) * 1e9)};
    return std::max(0, sigtimedwait(&set_, nullptr, &limit));
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

/// Ends this process by the signal, without a core dump. Returns what a shell would say where it cannot: the first process of
/// a container ignores signals.
inline int end_by_signal(int signal) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  return 128 + signal;
}

}  // namespace heapwright::tool
