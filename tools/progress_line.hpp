// How far an experiment is. On a terminal one line, cut to its width and rewritten before each run;
// elsewhere one line to a round, for logs.
#pragma once

#include <chrono>
#include <string>

namespace heapwright::tool {

class progress_line {
 public:
  /// `what`: stands before each line; may be empty.
  explicit progress_line(std::string what = {});

  /// What `experiment` tells before each run.
  void operator()(unsigned done, unsigned total, unsigned round, const std::string& name);

  void clear() const;

 private:
  std::string what_;
  bool terminal_;
  unsigned last_round_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace heapwright::tool
