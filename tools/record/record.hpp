// `heapwright record`: what it can be told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace heapwright::tool {

struct record_options {
  std::vector<std::string> command;  ///< empty: the process
  pid_t process = 0;
  std::string output;
  double seconds = 0;           ///< 0: to the end
  std::uint64_t max_bytes = 0;  ///< of the trace; 0: any
};

/// The command's own exit code; 0 of a process that runs already. Throws `failure`.
int record(const record_options& options);

}  // namespace heapwright::tool
