// `heapwright top`: what it can be told.
#pragma once

#include <string>

#include <sys/types.h>

#include "function_patterns.hpp"

namespace heapwright::tool {

struct top_options {
  pid_t pid = 0;
  std::string file;  ///< a run that is read instead of a process; `pid` chooses one of its processes, 0: the largest
  double every_seconds = 1;
  function_patterns wrappers;  ///< as places_book has them
  bool once = false;           ///< as also when standard output is no terminal
};

/// 0 when the user has had enough, or the process has ended. Throws `failure`.
int top(const top_options& options);

}  // namespace heapwright::tool
