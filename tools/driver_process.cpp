// The keeper writes its report into shared memory just before it ends.
#include "driver_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.hpp"
#include "measured_tree.hpp"
#include "process_tree.hpp"

namespace heapwright::tool {
namespace {

/// Again and again, until nothing new has been born meanwhile.
void kill_descendants(const awaited_signals& signals) {
  for (;;) {
    pid_t reaped = 0;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0 && errno == ECHILD) return;
    for (const tree_member& member : descendants()) kill(member.pid, SIGKILL);
    (void)signals.wait(0.02);
  }
}

}  // namespace

struct driver_process::report {
  double begin;
  double end;
  int wait_status;
};

driver_process::driver_process(const std::string& command, const awaited_signals& signals) {
  void* const page = mmap(nullptr, sizeof(report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw failure(exit_code::bad_input, "out of memory");
  report_ = new (page) report{0, 0, SIGKILL};
  keeper_ = fork();
  if (keeper_ == 0) keep(command, signals);
  if (keeper_ > 0) return;
  munmap(report_, sizeof(report));
  throw failure(exit_code::bad_input, fmt::format("cannot fork: {}", std::strerror(errno)));
}

driver_process::~driver_process() { munmap(report_, sizeof(report)); }

void driver_process::end() const { kill(keeper_, SIGTERM); }

double driver_process::wall_seconds() const { return report_->end - report_->begin; }

int driver_process::wait_status() const { return report_->wait_status; }

void driver_process::keep(const std::string& command, const awaited_signals& signals) {
  setpgid(0, 0);  // Ctrl-C is for the parent, which then ends this process.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  adopt_orphans();
  report_->begin = now();
  const pid_t shell = fork();
  if (shell == 0) become_shell(command, signals);
  bool is_running = shell > 0;
  while (is_running) {
    const int signal = signals.wait({}).number;
    if (signal != 0 && signal != SIGCHLD) break;
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != shell) continue;
      report_->end = now();
      report_->wait_status = status;
      is_running = false;
    }
  }
  kill_descendants(signals);
  _exit(0);
}

void driver_process::become_shell(const std::string& command, const awaited_signals& signals) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signals.restore();
  const descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(nothing.get(), STDIN_FILENO);
  dup2(output_.fd(), STDOUT_FILENO);
  dup2(errors_.fd(), STDERR_FILENO);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

}  // namespace heapwright::tool
