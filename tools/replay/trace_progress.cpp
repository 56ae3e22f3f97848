#include "trace_progress.hpp"

#include <csignal>
#include <cstring>

#include "failure.hpp"
#include "terminal.hpp"

namespace heapwright::tool {

plan_builder::progress trace_progress(const char* what, const awaited_signals& signals) {
  return [what, &signals, shown = -1](double done) mutable {
    const int percent = static_cast<int>(done * 100);
    if (percent == shown) return;
    shown = percent;
    show_step(fmt::format("{}: {} %", what, percent));
    const came_signal came = signals.wait(0);
    if (came.number == 0 || came.number == SIGCHLD) return;
    show_step("");
    tell("heapwright: interrupted by SIG{} while {}, after {} % of it\n", sigabbrev_np(came.number), what, percent);
    throw interrupted{came.number};
  };
}

}  // namespace heapwright::tool
