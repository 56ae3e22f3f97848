// Signals that would end this process wait until nothing would be left behind: folders, a file that
// is half written, a program that was started.
//
// States: a signal is noted, and ends the process when the object is destroyed. What the process
// starts meanwhile has its signals as they were. Those that are ignored stay so, but for a SIGINT
// that is sent to this process (awaited_signals.hpp).
#pragma once

#include <csignal>
#include <initializer_list>
#include <vector>

#include "awaited_signals.hpp"
#include "failure.hpp"

namespace heapwright::tool {

class interruptible {
 public:
  /// SIGPIPE alone: a subcommand awaits the others (awaited_signals.hpp). A write to a pipe without
  /// a reader fails meanwhile, as one to a full disk does.
  explicit interruptible(std::initializer_list<int> which = {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction ours {};
    ours.sa_flags = SA_SIGINFO;
    ours.sa_sigaction = [](int number, siginfo_t* about, void*) {
      if (is_meant_for_us(*about)) noted_ = number;
    };
    for (const int number : which) {
      struct sigaction before {};
      sigaction(number, nullptr, &before);
      const bool is_ignored = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_IGN;
      if (is_ignored && number != SIGINT) continue;
      sigaction(number, &ours, nullptr);
      before_.push_back({number, before});
    }
  }
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;
  ~interruptible() {
    for (const noted_signal& one : before_) sigaction(one.number, &one.before, nullptr);
    if (noted_ != 0) end_by_signal(noted_);
  }

  [[nodiscard]] static bool is_noted() { return noted_ != 0; }
  [[nodiscard]] static int noted() { return noted_; }  ///< 0: none
  static void throw_if_noted() {
    if (is_noted()) throw interrupted{noted_};
  }

 private:
  struct noted_signal {
    int number;
    struct sigaction before;
  };

  static inline volatile std::sig_atomic_t noted_ = 0;
  std::vector<noted_signal> before_;
};

}  // namespace heapwright::tool
