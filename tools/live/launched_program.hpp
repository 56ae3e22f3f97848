// A program started with the probe in it, and a folder of its own for the segments of it and its
// children.
//
// The folder goes when this object does: those who still read a segment keep what is open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "awaited_signals.hpp"
#include "segment_folder.hpp"

namespace heapwright::tool {

/// The program, or a process that it or one of its children has started.
struct command_process {
  pid_t id = 0;
  std::uint64_t start = 0;  ///< segment::process_start: another process may get the id later
  std::string name;         ///< as ps shows it, printable

  [[nodiscard]] bool is_running() const;
};

class launched_program {
 public:
  /// Called with the child's id before the child becomes the program.
  using preparation = std::function<void(pid_t child)>;
  /// Of the environment: names and values.
  using variables = std::map<std::string, std::string>;

  /// Throws `failure` when it cannot be started or the probe does not load into it. The program
  /// gets the environment of this process with these variables changed, and the signals as they
  /// were before `signals`. Node is asked to name its functions: V8 then writes to
  /// /tmp/perf-PID.map what each piece of code is. `java` is asked to keep frame pointers,
  /// and to listen to those who attach.
  launched_program(const std::vector<std::string>& command, const variables& changed, const awaited_signals& signals,
                   const preparation& prepare = {});
  launched_program(const launched_program&) = delete;
  launched_program& operator=(const launched_program&) = delete;
  ~launched_program();

  [[nodiscard]] pid_t id() const noexcept { return id_; }
  /// Of the command's segments.
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }

  /// The segment of the program itself, waited for. Throws `failure` when it ends or long runs
  /// without making one.
  [[nodiscard]] std::filesystem::path segment();

  /// Processes of the command that run now, the program first: descendants, those with a segment,
  /// and those that have their environment from the command. One that has replaced its environment
  /// is missing if it has no segment and its parent has ended. O(processes of the machine).
  [[nodiscard]] std::vector<command_process> running() const;

  /// Without those that only their environment tells of: O(processes of the command).
  [[nodiscard]] std::vector<command_process> quickly_found() const;

  /// Whether the probe is in it, or was when it could last be seen. A program that is statically
  /// linked runs without, and one that is setuid.
  [[nodiscard]] bool observes(const command_process& process) const;

  /// Whether a process that descends from the command may still call malloc with the probe in it,
  /// though it has no segment yet. This process must adopt orphans (process_tree.hpp): otherwise a
  /// child whose parent has ended is not found.
  [[nodiscard]] bool has_observable_descendants() const;

  /// Sends the signal to the running processes of the command that are in its session, the program
  /// first: a shell must not go on with its script because its child has ended. Daemons are in a
  /// session of their own. Sends nothing if the signal is from the terminal, which has sent it to
  /// its foreground group already. Returns the processes that have had it.
  [[nodiscard]] std::vector<command_process> pass_on(const came_signal& came) const;

  /// What a shell would say: 128 + signal for one that was killed. Nothing while it runs.
  [[nodiscard]] std::optional<int> exit_code();

  /// Asks for the ends of all children of this process, also of adopted ones.
  void reap();

  /// "exit code 3", "killed by SIGKILL". Precondition: it has ended.
  [[nodiscard]] std::string how_it_ended() const;

 private:
  void start(const std::vector<std::string>& command, const variables& changed, const awaited_signals& signals,
             const preparation& prepare);

  void remove_logs_of_v8() const;

  [[nodiscard]] std::vector<pid_t> ids_quickly_found() const;

  bool has_asked_node_ = false;
  pid_t id_ = 0;
  std::optional<int> status_;  ///< that waitpid has
  segment_folder folder_;
};

}  // namespace heapwright::tool
