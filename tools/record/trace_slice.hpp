// `heapwright trace slice`: a piece of a trace, as a trace of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heapwright::tool {

struct slice_options {
  std::string trace, output;
  double from_seconds = 0;
  double to_seconds = 1e9;
  std::optional<std::uint32_t> process;  ///< none: all
};

/// 0; 1 if the trace is torn, and the piece ends with it. Throws `failure`.
int trace_slice(const slice_options& options);

}  // namespace heapwright::tool
