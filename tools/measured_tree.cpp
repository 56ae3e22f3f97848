// The life of a run: fork -> gate -> seized -> exec -> (samples, signals) -> exit stop -> reaped ->
// leftovers killed.
//
// The child waits at the gate, a pipe, until it is seized; the parent opens it by closing its end.
// From then on one loop waits for signals (SIGCHLD among them), for the next sample and for the
// deadline, whichever comes first.
#include "measured_tree.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "awaited_signals.hpp"
#include "failure.hpp"
#include "heap_record.hpp"
#include "process_image.hpp"
#include "process_tree.hpp"

namespace heapwright::tool {
namespace {

double read_clock(clockid_t which) {
  timespec t{};
  clock_gettime(which, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double processor_time() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

ino_t own_program() {
  static const ino_t inode = [] {
    struct stat about {};
    stat("/proc/self/exe", &about);
    return about.st_ino;
  }();
  return inode;
}

/// The process that has most memory; none has 0.
tree_member largest(const std::vector<tree_member>& members) {
  const auto found = std::ranges::max_element(members, {}, &tree_member::resident);
  return found == members.end() ? tree_member{0, 0} : *found;
}

/// Which processes a tree has, and how much memory.
struct tree_look {
  std::set<pid_t> processes;
  std::uint64_t resident = 0;

  [[nodiscard]] bool is_like(const tree_look& other) const {
    const auto [less, more] = std::minmax(resident, other.resident);
    return processes == other.processes && more - less <= more / 100;
  }
};

/// Nothing while `first` is about to be reaped, without memory.
std::optional<tree_look> look_at(const std::vector<tree_member>& members, pid_t first) {
  tree_look look;
  bool first_lives = false;
  for (const tree_member& member : members) {
    look.processes.insert(member.pid);
    look.resident += member.resident;
    first_lives |= member.pid == first && member.resident > 0;
  }
  return first_lives ? std::optional(look) : std::nullopt;
}

/// The processor time of a process's first thread, as the kernel writes it, while that thread waits
/// for a processor; "" when it waits for something else.
std::string ran_before_it_waits(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid)).value_or("");
  if (!stat.substr(stat.rfind(')') + 1).starts_with(" R")) return "";
  const std::string times = read_file(fmt::format("/proc/{}/schedstat", pid)).value_or("");
  return times.substr(0, times.find(' '));
}

/// Nothing: the process does not run on libheapwright, cannot be read, or is gone.
std::optional<recipe_evidence> heap_of(const tree_member& process) {
  try {
    const auto record = heap_record::find(process.pid);
    const auto heap = record ? record->read() : std::nullopt;
    if (!heap) return std::nullopt;
    return evidence_of(*heap, process.resident, proc_bytes(process.pid, "status", "RssAnon"));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

double now() { return read_clock(CLOCK_MONOTONIC); }

/// What the child tells from the other side of the fork, just before it turns into the command.
struct measured_tree::departure {
  double moment;
  rusage usage;
  int exec_error;
};

measured_tree::measured_tree(const job& what, const awaited_signals& signals) : what_(what), signals_(signals) {
  void* const page = mmap(nullptr, sizeof(departure), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw failure(exit_code::bad_input, "out of memory");
  departure_ = new (page) departure{};
  adopt_orphans();
  launch();
  next_sample_ = now() + 0.002;
}

measured_tree::~measured_tree() {
  try {
    if (first_ > 0) end_all();
  } catch (const std::exception&) {
    kill(first_, SIGKILL);  // there is no memory to find the others with
  }
  munmap(departure_, sizeof(departure));
}

void measured_tree::watch(double deadline, const std::function<bool()>& is_done) {
  constexpr double patience = 0.005;  // between two questions
  while (!first_ended_ && now() < deadline) {
    const double next_question = is_done ? now() + patience : never;
    const int signal = signals_.wait(std::min({next_sample_, next_question, deadline}) - now()).number;
    if (signal != 0 && signal != SIGCHLD) throw interrupted{signal};
    reap();
    if (is_done && is_done()) return;
    if (first_ended_ || now() < next_sample_) continue;
    const double start = processor_time();
    const std::vector<tree_member> seen = members();
    sample(seen);
    // Long trees make long samples: rest a hundred times as long, to stay below one per cent.
    // Time in which others had the processor does not count: on a busy machine there would be
    // next to no samples. Nor does the look into a program, which is one for each.
    next_sample_ = now() + std::max(0.005, 100 * (processor_time() - start));
    for (const tree_member& member : seen) look_into(member.pid);
    if (what_.reads_heap) look_at_heap();
  }
}

std::uint64_t measured_tree::resident_at_end() {
  std::uint64_t bytes = 0;
  const auto all = members();
  for (const tree_member& member : all) bytes += member.resident;
  raise_peak(bytes);
  if (what_.reads_heap) result_.heap_at_end = heap_of(largest(all));
  return bytes;
}

std::uint64_t measured_tree::settle(double deadline) {
  constexpr double pause = 0.05;
  constexpr int alike_needed = 3;  // looks; processes that end one by one may be a pause apart
  std::optional<tree_look> last = look_at(members(), first_);
  for (int alike = 1; alike < alike_needed && now() < deadline;) {
    watch(std::min(now() + pause, deadline));
    if (first_ended_) break;
    std::optional<tree_look> next = look_at(members(), first_);
    if (!next) continue;
    alike = last && next->is_like(*last) ? alike + 1 : 1;
    last = std::move(next);
  }
  return last ? last->resident : 0;
}

void measured_tree::ask_to_end() const {
  if (!first_ended_) kill(first_, SIGTERM);
}

run_result measured_tree::finish() {
  end_all();
  if (departure_->exec_error != 0)
    throw failure(exit_code::not_executable, fmt::format("{} cannot be executed: {}", what_.command.front(),
                                                         std::strerror(departure_->exec_error)));
  result_.figures.user_seconds -= seconds(departure_->usage.ru_utime);
  result_.figures.system_seconds -= seconds(departure_->usage.ru_stime);
  result_.figures.minor_faults -= static_cast<std::uint64_t>(departure_->usage.ru_minflt);
  result_.figures.major_faults -= static_cast<std::uint64_t>(departure_->usage.ru_majflt);
  return std::move(result_);
}

void measured_tree::launch() {
  std::optional<pipe_ends> gate = make_pipe();
  if (!gate) throw failure(exit_code::bad_input, "cannot make a pipe");
  first_ = fork();
  if (first_ < 0) throw failure(exit_code::bad_input, fmt::format("cannot fork: {}", std::strerror(errno)));
  if (first_ == 0) become_command(*gate);
  // Seized, unlike PTRACE_TRACEME, the command can still be stopped and continued by job control.
  ptrace(PTRACE_SEIZE, first_, nullptr, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
  gate->writer.close();
}

void measured_tree::become_command(pipe_ends& gate) {
  setpgid(0, 0);  // Ctrl-C is for us; we then end the tree.
  signals_.restore();
  const descriptor input =
      what_.input != nullptr ? what_.input->reopen() : descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(input.get(), STDIN_FILENO);
  dup2(result_.output.fd(), STDOUT_FILENO);
  dup2(result_.errors.fd(), STDERR_FILENO);
  if (what_.ld_preload.empty())
    unsetenv("LD_PRELOAD");
  else
    setenv("LD_PRELOAD", what_.ld_preload.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : what_.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  gate.writer.close();
  char none;
  while (read(gate.reader.get(), &none, 1) < 0 && errno == EINTR) {
  }
  // Touches what the next lines touch, so that the mark is the highest of this copy of the tool.
  execvp("/no such folder/no such program", arguments.data());
  departure_->moment = now();
  getrusage(RUSAGE_SELF, &departure_->usage);
  departure_->moment = now();
  execvp(arguments[0], arguments.data());
  departure_->exec_error = errno;
  _exit(127);
}

void measured_tree::reap() {
  int status = 0;
  rusage usage{};
  for (pid_t pid = 0; (pid = wait4(-1, &status, WNOHANG | __WALL, &usage)) > 0;) {
    if (WIFSTOPPED(status)) {
      resume(status);
      continue;
    }
    if (pid == aside_) {
      aside_ended_ = true;
      aside_ = 0;  // the number may come again
      continue;
    }
    account(usage);
    if (pid != first_) continue;
    result_.wait_status = status;
    result_.figures.wall_seconds = now() - departure_->moment - held_seconds_;
    first_ended_ = true;
  }
}

/// Lets the traced process go on as it would have without us.
void measured_tree::resume(int status) {
  const int event = status >> 16;
  if (event == PTRACE_EVENT_EXIT) {
    const double start = now();
    look_into(first_);
    raise_peak(proc_bytes(first_, "status", "VmHWM"));
    result_.figures.end_rss = resident_at_end();
    result_.main_malloc = malloc_of(first_).value_or(result_.main_malloc);
    held_seconds_ += now() - start;
  }
  const bool group_stop = event == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
  const int signal = event == 0 ? WSTOPSIG(status) : 0;
  ptrace(group_stop ? PTRACE_LISTEN : PTRACE_CONT, first_, nullptr, signal);
}

void measured_tree::account(const rusage& usage) {
  measurement& figures = result_.figures;
  figures.user_seconds += seconds(usage.ru_utime);
  figures.system_seconds += seconds(usage.ru_stime);
  figures.minor_faults += static_cast<std::uint64_t>(usage.ru_minflt);
  figures.major_faults += static_cast<std::uint64_t>(usage.ru_majflt);
  // What exec itself may add to the inherited mark, which the kernel knows to some pages for each
  // processor.
  constexpr long slack_kib = 512;
  if (usage.ru_maxrss > departure_->usage.ru_maxrss + slack_kib)
    raise_peak(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
}

void measured_tree::raise_peak(std::uint64_t bytes) {
  result_.figures.peak_rss = std::max(result_.figures.peak_rss, bytes);
}

void measured_tree::sample(const std::vector<tree_member>& seen) {
  std::uint64_t resident = 0;
  for (const tree_member& member : seen) resident += member.resident;
  // Before exec, the child still is a copy of this tool.
  if (has_departed()) raise_peak(resident);
}

/// A heap is read seldom: each time its process has grown by 1/16. RSS stays at its peak while the
/// program frees its blocks one by one. So a reading counts only when a second one, a sample later,
/// has no less in use. A program that has had no processor between the two has not been heard.
void measured_tree::look_at_heap() {
  const auto most = largest(members());
  if ((most.resident < next_heap_rss_ && !unconfirmed_) || !has_departed()) return;
  auto found = heap_of(most);
  if (!found) {
    unconfirmed_.reset();
    next_heap_rss_ = std::max(next_heap_rss_, most.resident + most.resident / 16 + 1);
    return;
  }
  if (unconfirmed_ && unconfirmed_->of == most.pid && found->in_use >= unconfirmed_->heap.in_use) {
    if (!unconfirmed_->ran.empty() && ran_before_it_waits(most.pid) == unconfirmed_->ran) return;
    next_heap_rss_ = unconfirmed_->heap.rss + unconfirmed_->heap.rss / 16 + 1;
    result_.heap_at_peak = std::move(unconfirmed_->heap);
  }
  unconfirmed_.reset();
  if (most.resident >= next_heap_rss_) unconfirmed_ = {most.pid, *std::move(found), ran_before_it_waits(most.pid)};
}

/// Notes the malloc of a process, once for each program it turns into.
void measured_tree::look_into(pid_t pid) {
  struct stat about {};
  const std::string link = fmt::format("/proc/{}/exe", pid);
  if (stat(link.c_str(), &about) != 0 || about.st_ino == own_program() || looked_into_.contains({pid, about.st_ino}))
    return;
  const auto malloc = malloc_of(pid);
  if (!malloc) return;
  looked_into_.insert({pid, about.st_ino});
  std::error_code error;
  result_.seen.insert({name_of_process(pid), std::filesystem::read_symlink(link, error), *malloc});
  if (pid == first_) result_.main_malloc = *malloc;
}

bool measured_tree::has_departed() const {
  struct stat about {};
  return stat(fmt::format("/proc/{}/exe", first_).c_str(), &about) == 0 && about.st_ino != own_program();
}

/// Kills what is left of the tree, again and again until nothing new has been born meanwhile, and
/// reaps it all.
void measured_tree::end_all() {
  for (;;) {
    reap();
    if (waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD) break;
    if (!first_ended_) kill(first_, SIGKILL);
    for (const tree_member& member : descendants()) kill(member.pid, SIGKILL);
    (void)signals_.wait(0.02);
  }
  first_ = -1;
}

}  // namespace heapwright::tool
