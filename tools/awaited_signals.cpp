// The mask is the state: what is blocked stays pending until sigtimedwait takes it.
#include "awaited_signals.hpp"

#include <algorithm>
#include <ctime>

#include <sys/resource.h>

namespace heapwright::tool {
namespace {

const sigset_t ignored_from_start = [] {
  sigset_t ignored;
  sigemptyset(&ignored);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_IGN) sigaddset(&ignored, signal);
  }
  return ignored;
}();

}  // namespace

bool is_ignored_from_start(int signal) noexcept { return sigismember(&ignored_from_start, signal) == 1; }

bool is_meant_for_us(const siginfo_t& came) noexcept {
  return !is_ignored_from_start(came.si_signo) || (came.si_code != SI_KERNEL && came.si_signo != SIGHUP);
}

awaited_signals::awaited_signals(std::initializer_list<int> which) {
  sigemptyset(&set_);
  for (const int s : which) sigaddset(&set_, s);
  // Where it is ignored, the kernel reaps children itself, and tells nobody how they ended.
  if (sigismember(&set_, SIGCHLD) == 1) before_of_children_ = std::signal(SIGCHLD, SIG_DFL);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

void awaited_signals::restore() const {
  // `interruptible` has a handler for it.
  if (is_ignored_from_start(SIGINT)) std::signal(SIGINT, SIG_IGN);
  put_back();
}

void awaited_signals::put_back() const {
  if (sigismember(&set_, SIGCHLD) == 1) std::signal(SIGCHLD, before_of_children_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

came_signal awaited_signals::wait(std::optional<double> at_most_seconds) const {
  siginfo_t about{};
  int taken = 0;
  do {
    if (at_most_seconds) {
      const double bounded = std::clamp(*at_most_seconds, 0.0, 1e6);
      const auto whole = static_cast<time_t>(bounded);
      const timespec limit{whole, static_cast<long>((bounded - static_cast<double>(whole)) * 1e9)};
      taken = sigtimedwait(&set_, &about, &limit);
    } else {
      taken = sigwaitinfo(&set_, &about);
    }
  } while (taken > 0 && !is_meant_for_us(about));
  return taken > 0 ? came_signal{taken, about.si_code == SI_KERNEL} : came_signal{};
}

int end_by_signal(int signal) {
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
