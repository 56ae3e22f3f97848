// What stops a subcommand: a sentence for the person at the terminal, and the exit code that goes
// with it. Thrown where the trouble is known best, caught once, in main.
#pragma once

#include <stdexcept>
#include <string>

namespace heapwright::tool {

/// Exit codes other than the measured or started command's own. The last three are those of env(1)
/// and timeout(1), so that a command's status is not mistaken for ours.
namespace exit_code {
inline constexpr int judged_no = 1;    ///< compare: an allocator failed or differed; info: not loaded
inline constexpr int unreadable = 2;   ///< info: the process or file cannot be read
inline constexpr int bad_input = 125;  ///< nothing was started
inline constexpr int not_executable = 126;
inline constexpr int not_found = 127;
}  // namespace exit_code

class failure : public std::runtime_error {
 public:
  failure(int code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// A signal that asks for the end of this process came while it could not end. Thrown when all is
/// cleared up; main ends by it.
struct interrupted {
  int signal;
};

/// The process or file that was asked for cannot be read.
inline failure unreadable(const std::string& message) { return {exit_code::unreadable, message}; }

}  // namespace heapwright::tool
