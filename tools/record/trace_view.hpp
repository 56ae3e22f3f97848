// `heapwright trace`: what is in a trace.
#pragma once

#include <string>

namespace heapwright::tool {

/// Processes, events, bytes, what was live at most, and how the trace ends. Throws `failure`. 1 if
/// the trace is torn.
int trace_info(const std::string& file);

/// All parts as lines, and the frames of each call stack, with names.
int trace_dump(const std::string& file);

}  // namespace heapwright::tool
