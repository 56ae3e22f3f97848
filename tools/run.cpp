// `heapwright run`: becomes the command, with our malloc preloaded. Nothing of this tool remains in
// the process.
//
// With statistics it stays beside the command: it passes signals on, prints once the command has
// ended, and ends as the command did.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocators.hpp"
#include "awaited_signals.hpp"
#include "commands.hpp"
#include "descriptor.hpp"
#include "exit_reports.hpp"
#include "failure.hpp"
#include "heap_record.hpp"
#include "loader.hpp"
#include "program.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

failure not_executable(const std::string& command, int error) {
  return {exit_code::not_executable, fmt::format("{} cannot be executed: {}", command, std::strerror(error))};
}

void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
}

/// The command as a child, whose signals are those that this process would get in its place.
class companion {
 public:
  explicit companion(const std::vector<std::string>& command) {
    std::optional<pipe_ends> error = make_pipe();
    if (!error) throw not_executable(command[0], errno);
    child_ = fork();
    if (child_ < 0) throw not_executable(command[0], errno);
    if (child_ == 0) {
      signals_.restore();
      become(command);
      const int why = errno;
      (void)!write(error->writer.get(), &why, sizeof why);
      _exit(exit_code::not_executable);
    }
    error->writer.close();
    int why = 0;
    if (::read(error->reader.get(), &why, sizeof why) == sizeof why) {
      waitpid(child_, nullptr, 0);
      throw not_executable(command[0], why);
    }
  }

  [[nodiscard]] pid_t id() const noexcept { return child_; }

  /// The status that waitpid has.
  int wait() const {
    for (;;) {
      const came_signal came = signals_.wait({});
      if (came.number > 0 && came.number != SIGCHLD && !came.is_from_terminal) kill(child_, came.number);
      int status = 0;
      if (came.number == SIGCHLD && waitpid(child_, &status, WNOHANG) == child_) return status;
    }
  }

 private:
  const awaited_signals signals_{SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  pid_t child_ = 0;
};

/// Ends this process as the command has ended.
int end_like(int status) { return WIFSIGNALED(status) ? end_by_signal(WTERMSIG(status)) : WEXITSTATUS(status); }

int run_with_statistics(const run_options& options, bool is_go) {
  const exit_reports reports;
  const companion child(options.command);
  const int status = child.wait();
  const auto all = reports.read();
  std::string text = page_view(all, child.id(), WIFSIGNALED(status) ? WTERMSIG(status) : 0, is_go);
  if (options.statistics == wanted_statistics::of_all_processes && !all.empty()) text += '\n' + processes_view(all);
  const bool is_told = tell_text(text);
  const int code = end_like(status);
  return code == EXIT_SUCCESS && !is_told ? exit_code::bad_input : code;
}

}  // namespace

int run(const run_options& options) {
  const program target = program::resolve(options.command);
  const std::string library = options.is_hardened       ? own_preload("libheapwright-hardened.so")
                              : options.library.empty() ? own_preload()
                                                        : preload_of(options.library);
  const std::string preload = preload_value(library);
  if (const std::string complaint = ask_loader(target, library).complaint; !complaint.empty())
    throw failure(exit_code::bad_input, fmt::format("{} does not load into {}: {}", library, target.path, complaint));

  if (!preload.empty()) setenv("LD_PRELOAD", preload.c_str(), 1);
  if (options.guard_sample) setenv("HEAPWRIGHT_GUARD_SAMPLE", std::to_string(*options.guard_sample).c_str(), 1);
  if (options.statistics != wanted_statistics::none) {
    if (heap_record::is_kept_by(library)) return run_with_statistics(options, target.is_go);
    tell("heapwright: {} has no statistics; libheapwright has, and what `heapwright build` makes\n",
         library.empty() ? options.library : library);
  }
  become(options.command);
  throw not_executable(options.command[0], errno);
}

}  // namespace heapwright::tool
