// The driver of a server: a shell command that makes the server work, and is not measured with it.
//
// Problem     its processes must not count as the server's, and none may outlive the run.
// How         a copy of this process, the keeper, runs the shell and adopts all that descends from
//             it. When the shell has ended, or the keeper gets SIGTERM, it kills what is left of
//             them and ends itself. So the driver is one child of this process, which the server's
//             tree sets aside.
// States      running -> keeper has ended, which the server's tree sees (measured_tree::set_aside)
#pragma once

#include <string>

#include <sys/types.h>

#include "awaited_signals.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {

class driver_process {
 public:
  /// Starts it, in the environment of this process. `signals` has SIGCHLD and SIGTERM.
  driver_process(const std::string& command, const awaited_signals& signals);
  driver_process(const driver_process&) = delete;
  driver_process& operator=(const driver_process&) = delete;
  ~driver_process();

  /// Of the keeper.
  [[nodiscard]] pid_t id() const noexcept { return keeper_; }

  /// Asks the keeper to end the driver. To be called only while the keeper has not ended.
  void end() const;

  // What follows is known when the keeper has ended.
  /// From before the shell's exec to its end.
  [[nodiscard]] double wall_seconds() const;
  /// As waitpid tells of the shell; SIGKILL where the keeper was killed.
  [[nodiscard]] int wait_status() const;

  [[nodiscard]] const scratch_file& output() const noexcept { return output_; }
  [[nodiscard]] const scratch_file& errors() const noexcept { return errors_; }

 private:
  struct report;

  [[noreturn]] void keep(const std::string& command, const awaited_signals& signals);
  [[noreturn]] void become_shell(const std::string& command, const awaited_signals& signals);

  report* report_;  ///< shared with the keeper
  pid_t keeper_ = -1;
  scratch_file output_;
  scratch_file errors_;
};

}  // namespace heapwright::tool
