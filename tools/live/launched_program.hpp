// A program started with the probe in it, and a folder of its own for the segments of it and its
// children.
//
// The folder goes when this object does: those who still read a segment keep what is open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "awaited_signals.hpp"
#include "segment_folder.hpp"

namespace heapwright::tool {

class launched_program {
 public:
  /// Called with the child's id before the child becomes the program.
  using preparation = std::function<void(pid_t child)>;

  /// Throws `failure` when it cannot be started or the probe does not load into it. The program
  /// gets the environment of this process, and the signals as they were before `signals`. `sample`:
  /// for HEAPWRIGHT_SAMPLE; empty: what the environment has.
  launched_program(const std::vector<std::string>& command, const std::string& sample, const awaited_signals& signals,
                   const preparation& prepare = {});
  launched_program(const launched_program&) = delete;
  launched_program& operator=(const launched_program&) = delete;

  [[nodiscard]] pid_t id() const noexcept { return id_; }

  /// The segment of the program itself, waited for. Throws `failure` when it ends or long runs
  /// without making one.
  [[nodiscard]] std::filesystem::path segment();

  /// What a shell would say: 128 + signal for one that was killed. Nothing while it runs.
  [[nodiscard]] std::optional<int> exit_code();

  /// "exit code 3", "killed by SIGKILL". Precondition: it has ended.
  [[nodiscard]] std::string how_it_ended() const;

 private:
  void start(const std::vector<std::string>& command, const std::string& preload, const std::string& sample,
             const awaited_signals& signals, const preparation& prepare);

  pid_t id_ = 0;
  std::optional<int> status_;  ///< that waitpid has
  segment_folder folder_;
};

}  // namespace heapwright::tool
