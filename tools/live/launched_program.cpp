#include "launched_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocators.hpp"
#include "descriptor.hpp"
#include "elf_file.hpp"
#include "failure.hpp"
#include "loader.hpp"
#include "printable.hpp"
#include "process_image.hpp"
#include "process_tree.hpp"
#include "program.hpp"
#include "segment_reader.hpp"

namespace heapwright::tool {

using namespace std::chrono_literals;

namespace {

constexpr const char* folder_variable = "HEAPWRIGHT_SEGMENT_DIR";

/// Nothing: the segment is another process's, or has gone since it was found.
std::optional<segment::process_state> state_of(const std::filesystem::path& segment, pid_t process) {
  try {
    const segment::process_figures found = segment::segment_reader(segment).process();
    if (found.process_id == static_cast<std::uint32_t>(process)) return found.state;
  } catch (const segment::bad_segment&) {
    // The child's children come and go meanwhile.
  }
  return std::nullopt;
}

std::vector<pid_t> running_with_segments(const std::filesystem::path& folder) {
  std::vector<pid_t> ids;
  for (const auto& path : segment::segments_in(folder)) {
    try {
      const segment::process_figures process = segment::segment_reader(path).process();
      if (segment::is_there(process)) ids.push_back(static_cast<pid_t>(process.process_id));
    } catch (const segment::bad_segment&) {
      continue;
    }
  }
  return ids;
}

/// `entry`: NAME=VALUE.
bool has_in_environment(pid_t process, const std::string& entry) {
  const std::string all = read_file(fmt::format("/proc/{}/environ", process)).value_or("");
  return ('\0' + all).find('\0' + entry + '\0') != std::string::npos;
}

/// Each once, if it runs.
std::vector<command_process> described(const std::vector<pid_t>& ids) {
  std::vector<command_process> result;
  std::set<pid_t> known;
  for (const pid_t id : ids) {
    if (!known.insert(id).second) continue;
    const command_process process{id, segment::process_start(static_cast<std::uint32_t>(id)),
                                  printable(name_of_process(id))};
    if (process.start != 0) result.push_back(process);
  }
  return result;
}

std::string name_of(const program& started) { return std::filesystem::path(started.path).filename(); }

/// Node, or what may start one.
bool may_lead_to_node(const program& started) {
  constexpr std::array names{"node", "nodejs", "env", "sh", "dash", "bash", "zsh", "ksh", "fish"};
  return std::ranges::find(names, name_of(started)) != names.end();
}

std::string given_node_options() {
  const char* const given = std::getenv("NODE_OPTIONS");
  return given == nullptr ? "" : given;
}

/// Without frame pointers a call stack is lost where it enters code of Java. A JVM that listens can
/// be asked for the names of this code (jvm.hpp).
std::vector<std::string> with_options_of_java(std::vector<std::string> command) {
  for (const std::string_view option : {"StartAttachListener", "PreserveFramePointer"}) {
    const auto has_option = [&](const std::string& word) { return word.find(option) != std::string::npos; };
    if (std::ranges::none_of(command, has_option)) command.insert(command.begin() + 1, fmt::format("-XX:+{}", option));
  }
  return command;
}

/// Those that are given, and what has V8 name its code.
std::string node_options() {
  std::string options = given_node_options();
  for (const std::string_view wanted : {"--perf-basic-prof", "--interpreted-frames-native-stack"})
    if (options.find(wanted) == std::string::npos) (options += options.empty() ? "" : " ") += wanted;
  return options;
}

/// A child of fork has its parent's segment mapped. The loader maps the probe before libc: what has
/// neither is loaded only now, or never will have the probe.
bool may_be_observed(pid_t id) {
  if (segment::process_start(static_cast<std::uint32_t>(id)) == 0) return false;  // it has ended
  const auto files = mapped_files(id);
  if (std::ranges::any_of(files, [](const mapping& m) { return m.path.ends_with(".segment") || is_probe(m.path); }))
    return true;
  if (std::ranges::any_of(files, [](const mapping& m) { return is_libc(m.path); })) return false;
  const std::string path = path_inside(id, executable_of(id));
  const auto elf = elf_file::open(path);
  return elf && why_not_preloadable(*elf, path).empty();
}

}  // namespace

bool command_process::is_running() const {
  return start != 0 && segment::process_start(static_cast<std::uint32_t>(id)) == start;
}

launched_program::launched_program(const std::vector<std::string>& command, const variables& changed,
                                   const awaited_signals& signals, const preparation& prepare) {
  const program target = program::resolve(command);
  const std::string probe = own_preload("libheapwright-probe.so");
  if (const std::string complaint = ask_loader(target, probe).complaint; !complaint.empty())
    throw failure(exit_code::bad_input, fmt::format("the probe does not load into {}: {}", target.path, complaint));
  variables all = changed;
  all["LD_PRELOAD"] = preload_value(probe);
  all[folder_variable] = folder_.path();
  if (const std::string options = node_options(); may_lead_to_node(target) && options != given_node_options()) {
    all["NODE_OPTIONS"] = options;
    has_asked_node_ = true;
  }
  start(name_of(target) == "java" ? with_options_of_java(command) : command, all, signals, prepare);
}

launched_program::~launched_program() {
  if (has_asked_node_) remove_logs_of_v8();
}

/// With these options V8 leaves a log in the folder where each process began, as
/// isolate-0x2f10-PID-v8.log. Nobody has asked for that.
void launched_program::remove_logs_of_v8() const {
  std::set<std::string> ids;
  for (const auto& path : segment::segments_in(folder_.path())) {
    const std::string name = path.filename();
    ids.insert(name.substr(0, name.find('-')));
  }
  std::error_code trouble;
  for (std::filesystem::directory_iterator entry(".", trouble), end; !trouble && entry != end;
       entry.increment(trouble)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with("isolate-0x") || !name.ends_with("-v8.log")) continue;
    const auto first = name.find('-', std::string_view("isolate-0x").size()), last = name.rfind("-v8.log");
    std::error_code ignored;
    if (first < last && ids.contains(name.substr(first + 1, last - first - 1)))
      std::filesystem::remove(entry->path(), ignored);
  }
}

void launched_program::start(const std::vector<std::string>& command, const variables& changed,
                             const awaited_signals& signals, const preparation& prepare) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  // The child says through `complaint` why it could not become the program; becoming it closes that
  // pipe. It waits at the gate until this process closes it.
  std::optional<pipe_ends> complaint = make_pipe(), gate = make_pipe();
  if (!complaint || !gate)
    throw failure(exit_code::bad_input, fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
  id_ = fork();
  if (id_ == 0) {
    gate->writer.close();
    char nothing = 0;
    while (read(gate->reader.get(), &nothing, 1) < 0 && errno == EINTR) {
    }
    signals.restore();
    for (const auto& [name, value] : changed) setenv(name.c_str(), value.c_str(), 1);
    execvp(arguments[0], arguments.data());
    const int error = errno;
    [[maybe_unused]] const auto written = write(complaint->writer.get(), &error, sizeof error);
    _exit(exit_code::not_executable);
  }
  const int fork_error = errno;
  complaint->writer.close();
  gate->reader.close();
  if (id_ > 0 && prepare) prepare(id_);
  gate->writer.close();
  int error = 0;
  const bool has_failed = id_ < 0 || read(complaint->reader.get(), &error, sizeof error) == sizeof error;
  if (!has_failed) return;
  if (id_ > 0) waitpid(id_, nullptr, 0);
  throw failure(exit_code::not_executable,
                fmt::format("{} cannot be executed: {}", command[0], std::strerror(id_ < 0 ? fork_error : error)));
}

std::filesystem::path launched_program::segment() {
  const auto until = std::chrono::steady_clock::now() + 10s;
  for (;;) {
    const std::optional<int> ended = exit_code();
    std::filesystem::path replaced;
    for (const auto& path : segment::segments_in(folder_.path())) {
      const auto state = state_of(path, id_);
      if (state && *state != segment::process_state::replaced) return path;
      // A script became the program by exec: what counts is the program.
      if (state) replaced = path;
    }
    const bool is_late = std::chrono::steady_clock::now() > until;
    if ((ended || is_late) && !replaced.empty()) return replaced;
    if (ended)
      throw failure(*ended != 0 ? *ended : exit_code::bad_input, why_no_segment("the program", folder_.path()));
    if (is_late)
      throw failure(exit_code::bad_input,
                    fmt::format("process {} runs, but the probe in it has made no segment within ten seconds", id_));
    std::this_thread::sleep_for(10ms);
  }
}

std::vector<pid_t> launched_program::ids_quickly_found() const {
  std::vector<pid_t> ids;
  if (!status_) ids.push_back(id_);
  for (const tree_member& member : descendants()) ids.push_back(member.pid);
  for (const pid_t id : running_with_segments(folder_.path())) ids.push_back(id);
  return ids;
}

std::vector<command_process> launched_program::quickly_found() const { return described(ids_quickly_found()); }

std::vector<command_process> launched_program::running() const {
  std::vector<pid_t> ids = ids_quickly_found();
  // No other run has this folder.
  const std::string entry = fmt::format("{}={}", folder_variable, folder_.path().native());
  std::ranges::copy_if(processes(), std::back_inserter(ids), [&](pid_t id) { return has_in_environment(id, entry); });
  return described(ids);
}

bool launched_program::observes(const command_process& process) const {
  // A child of fork has no segment until it calls malloc.
  if (const auto files = mapped_files(process.id); !files.empty())
    return std::ranges::any_of(files,
                               [](const mapping& m) { return m.path.ends_with(".segment") || is_probe(m.path); });
  // Its memory may not be looked at.
  return std::ranges::count(running_with_segments(folder_.path()), process.id) > 0;
}

bool launched_program::has_observable_descendants() const {
  std::vector<pid_t> before;
  for (;;) {
    std::vector<pid_t> ids;
    for (const tree_member& member : descendants()) ids.push_back(member.pid);
    if (std::ranges::any_of(ids, may_be_observed)) return true;
    // One that has ended since it was listed may have left a child that was not.
    if (ids == before) return false;
    before = std::move(ids);
  }
}

std::vector<command_process> launched_program::pass_on(const came_signal& came) const {
  const pid_t session = getsid(0), programs_session = getsid(id_), group = getpgid(0);
  std::vector<command_process> reached = running();
  std::erase_if(reached, [&](const command_process& p) {
    if (p.id == id_) return false;
    if (came.is_from_terminal) return getpgid(p.id) != group;
    const pid_t its_session = getsid(p.id);
    return its_session < 0 || (its_session != session && its_session != programs_session);
  });
  if (!came.is_from_terminal)
    for (const command_process& p : reached) kill(p.id, came.number);
  return reached;
}

std::optional<int> launched_program::exit_code() {
  int status = 0;
  if (!status_ && waitpid(id_, &status, WNOHANG) == id_) status_ = status;
  if (!status_) return std::nullopt;
  return WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
}

void launched_program::reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
    if (ended == id_) status_ = status;
}

std::string launched_program::how_it_ended() const {
  if (!WIFSIGNALED(*status_)) return fmt::format("exit code {}", WEXITSTATUS(*status_));
  const char* const name = sigabbrev_np(WTERMSIG(*status_));
  return fmt::format("killed by SIG{}", name != nullptr ? name : std::to_string(WTERMSIG(*status_)));
}

}  // namespace heapwright::tool
