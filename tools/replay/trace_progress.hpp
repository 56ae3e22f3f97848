// How far the reading of a trace is: shown as a step, and ended by a signal.
#pragma once

#include "awaited_signals.hpp"
#include "plan_builder.hpp"

namespace heapwright::tool {

/// Shows "WHAT: N %" for each part of a hundred. When one of the signals has come (SIGCHLD is not
/// looked at) it says on standard error where it ends, and throws `interrupted`.
/// `what` and `signals` live as long as the progress.
[[nodiscard]] plan_builder::progress trace_progress(const char* what, const awaited_signals& signals);

}  // namespace heapwright::tool
