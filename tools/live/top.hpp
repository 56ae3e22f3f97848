// `heapwright top`: what it can be told.
#pragma once

#include <string>

#include <sys/types.h>

namespace heapwright::tool {

struct top_options {
  pid_t pid = 0;
  double every_seconds = 1;
  bool once = false;  ///< as also when standard output is no terminal
};

/// 0 when the user has had enough, or the process has ended. Throws `failure`.
int top(const top_options& options);

}  // namespace heapwright::tool
