// `heapwright leaks`: what it can be told.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heapwright::tool {

/// Exactly one of command and segment is given.
struct leaks_options {
  std::vector<std::string> command;
  std::string segment;

  std::vector<std::string> suppressed;         ///< patterns of functions' names
  std::vector<std::string> suppression_files;  ///< with such patterns
  std::string output;  ///< the report's file, - for stdout; empty: stderr for a command, stdout for a segment
  std::size_t limit = 50;
  bool all = false;
  bool json = false;
};

/// 1 if something is definitely lost; otherwise the command's own exit code, 0 for a segment.
/// Throws `failure`.
int leaks(const leaks_options& options);

}  // namespace heapwright::tool
