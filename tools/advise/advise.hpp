// `heapwright advise`: what it can be told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "function_patterns.hpp"

namespace heapwright::tool {

struct advise_options {
  std::string trace;
  std::optional<std::uint32_t> process;  ///< its number in the trace; none: that with most events
  unsigned rounds = 5;
  function_patterns wrappers;  ///< functions that allocate for others
  std::string json;
  std::string html;
};

/// 0, also where there is no advice; 1 if a replay failed. Throws `failure`.
int advise(const advise_options& options);

}  // namespace heapwright::tool
