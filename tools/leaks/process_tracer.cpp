#include "process_tracer.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>

#include <dirent.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "descriptor.hpp"

namespace heapwright::tool {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto looking_again = 5ms;
/// A thread that does not come to its end in this time sleeps in the kernel. It runs no code of the
/// program any more.
constexpr auto longest_wait = 3s;

void go_on(pid_t thread, int signal = 0) { ptrace(PTRACE_CONT, thread, 0, signal); }

pid_t process_of(pid_t thread) {
  const std::string text = read_file(fmt::format("/proc/{}/status", thread)).value_or("");
  const auto at = text.find("\nTgid:");
  return at == std::string::npos ? thread : static_cast<pid_t>(std::strtol(text.c_str() + at + 6, nullptr, 10));
}

std::vector<pid_t> listed_threads(pid_t process) {
  std::vector<pid_t> threads;
  DIR* const folder = opendir(fmt::format("/proc/{}/task", process).c_str());
  if (folder == nullptr) return threads;
  while (const dirent* const entry = readdir(folder))
    if (entry->d_name[0] != '.') threads.push_back(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
  closedir(folder);
  return threads;
}

bool is_in_exec(pid_t process, pid_t thread) {
  const std::string text = read_file(fmt::format("/proc/{}/task/{}/syscall", process, thread)).value_or("");
  long number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number == SYS_execve || number == SYS_execveat;
}

}  // namespace

bool process_tracer::follow(pid_t child) {
  constexpr unsigned long events =
      PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
  if (ptrace(PTRACE_SEIZE, child, 0, events) != 0) return false;
  threads_[child].process = child;
  return true;
}

bool process_tracer::handle_reports() {
  for (;;) {
    int status = 0;
    const pid_t id = waitpid(-1, &status, __WALL | WNOHANG);
    if (id < 0 && errno == EINTR) continue;
    if (id < 0) return false;
    if (id == 0) break;
    handle(id, status);
  }
  look_for_ends();
  return true;
}

std::optional<std::chrono::milliseconds> process_tracer::patience() const {
  const bool waits = std::ranges::any_of(threads_, [](const auto& t) { return t.second.is == stage::held; });
  return waits ? std::optional<std::chrono::milliseconds>(looking_again) : std::nullopt;
}

std::optional<int> process_tracer::status_of(pid_t process) const {
  const auto found = ended_.find(process);
  return found == ended_.end() ? std::nullopt : std::optional<int>(found->second);
}

std::size_t process_tracer::running_processes() const {
  std::set<pid_t> running;
  for (const auto& [id, t] : threads_) running.insert(t.process);
  return running.size();
}

/// A thread may report before the one that has created it does.
process_tracer::thread& process_tracer::known(pid_t id) {
  thread& t = threads_[id];
  if (t.process == 0) t.process = process_of(id);
  return t;
}

void process_tracer::handle(pid_t id, int status) {
  if (WIFSTOPPED(status)) return handle_stop(id, status);
  const auto found = threads_.find(id);
  if (found == threads_.end() || found->second.process == id) ended_[id] = status;
  if (found != threads_.end()) threads_.erase(found);
}

void process_tracer::handle_stop(pid_t id, int status) {
  (void)known(id);
  const int signal = WSTOPSIG(status);
  const bool is_job_control = signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
  switch (status >> 16) {
    case 0: return go_on(id, signal);
    case PTRACE_EVENT_EXIT: return handle_end_of_thread(id);
    case PTRACE_EVENT_EXEC: return handle_exec(id);
    case PTRACE_EVENT_STOP:
      if (!is_job_control) return go_on(id);
      ptrace(PTRACE_LISTEN, id, 0, 0);  // stays stopped until SIGCONT, like a process that nobody traces
      return;
    default: return go_on(id);
  }
}

void process_tracer::handle_end_of_thread(pid_t id) {
  thread& t = known(id);
  unsigned long status = 0;
  ptrace(PTRACE_GETEVENTMSG, id, 0, &status);
  const auto state = read_thread_state(id);
  const bool is_signalled = (status & 0x7f) != 0;
  t.status = static_cast<int>(status);
  t.state = state.value_or(thread_state{});
  t.is = stage::held;
  t.since = clock::now();
  t.ends_process = is_signalled || t.state.system_call == SYS_exit_group;
  const bool ends_alone = !is_signalled && t.state.system_call == SYS_exit;
  // The program waits for no result of such a call: what it left there is of no use to it.
  if (!is_signalled && (ends_alone || t.ends_process)) t.state.scratch.clear();
  if (!state || (ends_alone && !awaited(t.process).empty())) {
    t.is = stage::leaving;
    go_on(id);
  }
}

/// All other threads of the process are gone, and the one that is left has the process's id.
void process_tracer::handle_exec(pid_t id) {
  for (const pid_t other : threads_of(id))
    if (other != id) threads_.erase(other);
  threads_[id] = {};
  threads_[id].process = id;
  go_on(id);
}

std::vector<pid_t> process_tracer::threads_of(pid_t process) const {
  std::vector<pid_t> result;
  for (const auto& [id, t] : threads_)
    if (t.process == process) result.push_back(id);
  return result;
}

std::vector<pid_t> process_tracer::awaited(pid_t process) const {
  std::vector<pid_t> result;
  for (const pid_t id : listed_threads(process)) {
    const auto found = threads_.find(id);
    if (found == threads_.end() || found->second.is == stage::running) result.push_back(id);
  }
  return result;
}

void process_tracer::look_for_ends() {
  std::set<pid_t> ending;
  for (const auto& [id, t] : threads_)
    if (t.is == stage::held) ending.insert(t.process);
  for (const pid_t process : ending) {
    const auto missing = awaited(process);
    if (missing.empty()) {
      finish(process);
      continue;
    }
    bool is_certain = false, is_late = false;
    for (const pid_t id : threads_of(process)) {
      const thread& t = threads_[id];
      if (t.is != stage::held) continue;
      is_certain |= t.ends_process;
      is_late |= clock::now() - t.since > longest_wait;
    }
    const bool is_exec = !is_certain && std::ranges::any_of(missing, [&](pid_t id) { return is_in_exec(process, id); });
    if (is_certain && is_late) finish(process);
    if (!is_exec && (is_certain || !is_late)) continue;
    for (const pid_t id : threads_of(process)) {
      if (threads_[id].is != stage::held) continue;
      threads_[id].is = stage::leaving;
      go_on(id);
    }
  }
}

void process_tracer::finish(pid_t process) {
  ending_process e;
  e.id = process;
  for (const pid_t id : threads_of(process)) {
    const thread& t = threads_[id];
    if (t.is != stage::held) continue;
    if (e.reader == 0 || t.ends_process) {
      e.reader = id;
      e.status = t.status;
    }
    e.threads.push_back(t.state);
  }
  at_end_(e);
  for (const pid_t id : threads_of(process)) {
    if (threads_[id].is != stage::held) continue;
    threads_[id].is = stage::leaving;
    go_on(id);
  }
}

}  // namespace heapwright::tool
