// A comparison being made: warm-up, interleaved rounds, and the judgement on each run.
//
// Each run must end well, be seen to have used the allocator it was given, and print what the first
// run under glibc printed. An allocator that fails once is out, with the reason in its row; glibc
// failing ends the comparison, since then the fault lies with the command. Interrupted by SIGINT,
// SIGTERM or SIGHUP, it ends with the rounds that are complete.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comparison.hpp"
#include "failure.hpp"

namespace heapwright::tool {

struct experiment {
  std::vector<std::string> command;
  std::optional<server_plan> server;  ///< if the command is a server; its output is not compared then
  program target;
  std::vector<allocator> candidates;
  const scratch_file* input;
  unsigned rounds;
  double tolerance;
  std::string baseline;    ///< the name of a row
  double timeout_seconds;  ///< of a command; of a server, its plan has the limits
  bool compare_output;
  /// Told before each run: how many are done, of how many, the round (0 is the warm-up), and which
  /// allocator comes now.
  std::function<void(unsigned done, unsigned total, unsigned round, const std::string& name)> progress;
};

/// Interrupted before a round was complete.
struct interrupted_early : interrupted {
  std::vector<comparison_row> rows;  ///< those that were begun; some may have failed
};

/// Throws `failure` if the command does not work under glibc, and `interrupted_early` if no round
/// is complete when it is interrupted.
comparison carry_out(const experiment& plan);

}  // namespace heapwright::tool
