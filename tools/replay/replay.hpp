// `heapwright replay`: what it can be told.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace heapwright::tool {

struct replay_options {
  std::string trace;
  std::vector<std::string> with;
  std::vector<std::string> only;
  std::optional<std::uint32_t> process;  ///< its number in the trace; none: that with most events
  unsigned rounds = 5;
  bool only_memory = false;
  bool only_time = false;
  bool counts = false;  ///< instructions
  bool touch_all = false;
  std::string json;
  std::string html;
};

/// 0; 1 if an allocator failed. Throws `failure`.
int replay(const replay_options& options);

}  // namespace heapwright::tool
