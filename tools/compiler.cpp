#include "compiler.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "awaited_signals.hpp"
#include "compiler_text.hpp"
#include "failure.hpp"
#include "interruptible.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {
namespace {

pid_t start(const std::vector<std::string>& command, const scratch_file& errors) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors.fd(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.fd(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // It ignores what this process ignores. But `interruptible` has a handler for SIGINT.
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  if (is_ignored_from_start(SIGINT)) sigaddset(&blocked, SIGINT);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return child;
  throw failure(
      exit_code::bad_input,
      fmt::format("the C++ compiler {} cannot be run: {}; install one, or name one that is installed: in CXX, or, for "
                  "build and fit, by --compiler",
                  command[0], std::strerror(error)));
}

}  // namespace

compiler::compiler(const std::string& command) : words_(compiler_words(command)) {}

std::vector<compiler_result> compiler::run(const std::vector<compiler_run>& runs,
                                           const std::function<void(std::size_t)>& done) const {
  const std::size_t most = std::max(std::thread::hardware_concurrency(), 1U);
  std::vector<scratch_file> errors;
  std::vector<compiler_result> results;
  std::map<pid_t, std::size_t> running;
  bool all_good = true;
  std::size_t finished = 0;
  while ((all_good && results.size() < runs.size()) || !running.empty()) {
    if (all_good && results.size() < runs.size() && running.size() < most) {
      std::vector<std::string> command = words_;
      const auto& more = runs[results.size()].arguments;
      command.insert(command.end(), more.begin(), more.end());
      errors.emplace_back();
      running[start(command, errors.back())] = results.size();
      results.push_back({});
      continue;
    }
    int status = 0;
    const pid_t child = wait(&status);
    if (interruptible::is_noted()) {
      all_good = false;
      for (const auto& [pid, index] : running) kill(pid, SIGTERM);
    }
    if (child < 0 && errno == EINTR) continue;
    const auto ended = running.find(child);
    if (ended == running.end()) continue;
    compiler_result& result = results[ended->second];
    result = {WIFEXITED(status) && WEXITSTATUS(status) == 0, errors[ended->second].content()};
    if (!result.good && result.complaints.empty())
      result.complaints =
          fmt::format("error: {} failed and said nothing (is there no room in $TMPDIR, or in /tmp?)\n", name());
    if (WIFSIGNALED(status))
      result.complaints += fmt::format("error: {} was killed by signal {}\n", name(), WTERMSIG(status));
    all_good = all_good && result.good;
    running.erase(ended);
    if (done && !interruptible::is_noted()) done(++finished);
  }
  if (interruptible::is_noted()) throw failure(exit_code::bad_input, "interrupted");
  return results;
}

}  // namespace heapwright::tool
