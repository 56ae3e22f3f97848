// `heapwright live`: chooses what to look at, serves it, and waits for the program and the user.
//
// A signal that asks for the end while the started program runs is passed on to it and to the
// processes that it has started, unless it comes from the terminal, which sends ctrl-C to all. This
// tool then goes when these are gone. One after the program's end ends the page.
#include "live.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "awaited_signals.hpp"
#include "descriptor.hpp"
#include "failure.hpp"
#include "given_advice.hpp"
#include "guard.hpp"
#include "http_server.hpp"
#include "interruptible.hpp"
#include "launched_program.hpp"
#include "memory_picture.hpp"
#include "output_file.hpp"
#include "process_image.hpp"
#include "pusher.hpp"
#include "quantities.hpp"
#include "routes.hpp"
#include "saved_run.hpp"
#include "segment_choice.hpp"
#include "snapshot_page.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

std::string list_line(const segment::process_figures& process, bool is_there, double live_bytes) {
  const bool has_exited = process.state == segment::process_state::exited;
  return fmt::format("{:>8}  {:<8}  {:>10}  {}", process.process_id,
                     is_there     ? "running"
                     : has_exited ? "ended"
                                  : "gone",
                     show_bytes(std::max(live_bytes, 0.0)), command_of(process));
}

/// Those that run, and then the newest of those that have ended.
int print_list() {
  constexpr std::size_t most_ended = 20;
  std::set<std::uint32_t> running;
  std::vector<std::pair<std::uint64_t, std::string>> ended;  // since 1970, nanoseconds
  std::set<std::string> folders_of_ended;
  bool has_heading = false;
  const auto print = [&](const std::string& line) {
    if (!std::exchange(has_heading, true)) answer("{:>8}  {:<8}  {:>10}  command\n", "process", "", "live");
    answer("{}\n", line);
  };
  for (const auto& path : all_segments()) {
    try {
      segment::snapshot seen = segment::segment_reader(path).read();
      if (seen.process.state == segment::process_state::replaced) continue;  // it goes on as another
      const segment::class_figures total = seen.total();
      const bool is_there = segment::is_there(seen.process);
      // Some programs say there what they do.
      if (auto now = arguments_of(static_cast<pid_t>(seen.process.process_id)); is_there && !now.empty())
        seen.process.arguments = std::move(now);
      const auto live = static_cast<std::int64_t>(total.allocated_bytes - total.freed_bytes);
      std::string line = list_line(seen.process, is_there, static_cast<double>(live));
      if (!is_there) {
        ended.emplace_back(seen.process.started_unix_ns, std::move(line));
        folders_of_ended.insert(path.parent_path());
      } else if (running.insert(seen.process.process_id).second) {
        print(line);
      }
    } catch (const std::exception&) {
      continue;  // it went since it was found, or asks for more memory than there is
    }
  }
  for (const auto& heap : heap_record::find_all()) {
    const auto figures = heap->read();
    const segment::process_figures process = describe(heap->process());
    if (figures && running.insert(process.process_id).second)
      print(list_line(process, true, static_cast<double>(figures->outside())) + "  (without the probe)");
  }
  if (running.empty())
    tell("heapwright: no process that runs now has the probe or runs on libheapwright, as far as you may look\n");
  std::ranges::sort(ended, std::ranges::greater{});
  for (const auto& [started, line] : ended | std::views::take(most_ended)) print(line);
  if (ended.size() > most_ended)
    tell("heapwright: {} more ended before; their segments lie in {}\n", ended.size() - most_ended,
         fmt::join(folders_of_ended, ", "));
  return EXIT_SUCCESS;
}

bool opens_browser(const live_options& options) {
  return !options.no_browser && (std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr);
}

void open_browser(const std::string& url, const awaited_signals& signals) {
  // Twice, so that nobody has to wait for the browser.
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      signals.restore();
      const int nothing = open("/dev/null", O_RDWR);
      for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
      execlp("xdg-open", "xdg-open", url.c_str(), nullptr);
    }
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

/// Other machines may know this one by it.
std::string machine_name() {
  std::array<char, 256> name{};
  const bool is_known = gethostname(name.data(), name.size() - 1) == 0 && name.front() != '\0';
  return is_known ? name.data() : "localhost";
}

std::string url_of(const live_options& options, std::uint16_t port, const std::string& token) {
  std::string host = options.host;
  if (host == "0.0.0.0" || host == "::") host = machine_name();
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return fmt::format("http://{}:{}/{}", host, port, token.empty() ? "" : "?token=" + token);
}

/// Files that are written.
std::vector<std::string> outputs_of(const live_options& options) {
  std::vector<std::string> files{options.save, options.snapshot};
  std::erase(files, "");
  return files;
}

/// Whether somebody finds the page, or gets a saved run, without the message that has the address.
bool needs_no_message(const live_options& options, const std::string& token) {
  const bool is_chosen = options.port != 0 && token == options.token;
  return is_chosen || options.ready_fd >= 0 || opens_browser(options) || !outputs_of(options).empty();
}

/// False: nobody would know where the page is.
bool tell_address(const live_options& options, const std::string& url, const std::string& token) {
  return tell_text(fmt::format("heapwright: live at {}\n", url)) || needs_no_message(options, token);
}

failure lost_address() {
  return {exit_code::bad_input,
          "standard error does not take the page's address; say --port PORT (and --token TOKEN where --host is not "
          "loopback), or --ready-fd FD"};
}

std::string token_for(const live_options& options) {
  if (!options.token.empty() && !is_good_token(options.token))
    throw failure(exit_code::bad_input, "a token has 12 to 256 letters, digits and -._~");
  if (!options.token.empty() || is_loopback(options.host)) return options.token;
  return random_token();
}

/// Names, once and by program, the processes of the command that run without the probe. To be
/// called about once a second: one that has just begun, or has become another program, is given
/// until the next time.
class unobserved_processes {
 public:
  void tell_of_new(const launched_program& started) {
    std::map<program, int> looks;
    for (const command_process& p : started.quickly_found()) {
      const program which{p.id, p.start, p.name};
      const auto seen = looks_.find(which);
      const int look = looks[which] = seen == looks_.end() ? 1 : seen->second + 1;
      if (look != 2 || told_.size() == most_told || told_.contains(p.name)) continue;
      if (started.observes(p) || !p.is_running()) continue;
      told_.insert(p.name);
      tell(
          "heapwright: process {} ({}) is not observed: it is statically linked or setuid, or runs without "
          "LD_PRELOAD\n",
          p.id, p.name);
    }
    looks_ = std::move(looks);
  }

 private:
  static constexpr std::size_t most_told = 10;

  using program = std::tuple<pid_t, std::uint64_t, std::string>;  ///< the process's id, its start, its name

  std::map<program, int> looks_;  ///< how often each was seen
  std::set<std::string> told_;
};

void check_apart(const live_options& options) {
  if (!options.save.empty() && !options.snapshot.empty() && lead_to_one_file(options.save, options.snapshot))
    throw failure(exit_code::bad_input, fmt::format("--save and --snapshot both name {}", options.save));
  if (!options.snapshot.empty() && !options.file.empty() && lead_to_one_file(options.file, options.snapshot))
    throw failure(exit_code::bad_input, fmt::format("--snapshot would replace {}", options.file));
}

/// Until a program that was started is gone, if it is to be left with, or else until the user says
/// so. A signal goes on to the processes of the command, and the wait is for all of them. Where it
/// does not end them, a second one ends the wait. `save`: what is written behind the end; may be
/// empty. `each_second`: about as often.
void wait_for_end(const awaited_signals& signals, launched_program& started, bool leaves_with_program,
                  const std::string& save, const std::function<void()>& each_second) {
  using clock = std::chrono::steady_clock;
  constexpr auto second = std::chrono::seconds(1);
  std::vector<command_process> signalled;  // and still running
  std::optional<clock::time_point> signalled_at;
  clock::time_point next_second = clock::now();
  for (bool has_told = false, has_told_of_wait = false;;) {
    if (clock::now() >= next_second) {
      each_second();
      next_second = clock::now() + second;
    }
    const auto ended = started.exit_code();
    std::erase_if(signalled, [](const command_process& p) { return !p.is_running(); });
    if (ended && leaves_with_program && signalled.empty()) return;
    if (ended && !has_told && !leaves_with_program) {
      has_told = true;
      tell("heapwright: the program has ended ({}); the page stays until ctrl-C{}\n", started.how_it_ended(),
           save.empty() ? "" : fmt::format(", which writes {}", save));
    }
    if (signalled_at && !has_told_of_wait && !signalled.empty() && clock::now() >= *signalled_at + second) {
      has_told_of_wait = true;
      tell("heapwright: process {} ({}) has had the signal and goes on; another one ends this page alone\n",
           signalled.front().id, signalled.front().name);
    }
    // The end of a child is a signal, that of a grandchild is not.
    const came_signal came = signals.wait(signalled_at ? 0.1 : 1.0);
    if (came.number == 0 || came.number == SIGCHLD) continue;
    if (signalled_at || ended) return;
    signalled = started.pass_on(came);
    signalled_at = clock::now();
    leaves_with_program = true;
  }
}

/// What the command leaves behind.
void tell_what_goes_on(const launched_program& started) {
  constexpr std::size_t most = 10;
  const std::vector<command_process> left = started.running();
  for (std::size_t i = 0; i < std::min(left.size(), most); ++i)
    tell("heapwright: process {} ({}) goes on without this page\n", left[i].id, left[i].name);
  if (left.size() > most) tell("heapwright: so do {} more\n", left.size() - most);
}

/// Until the user says so; or until a process that was there before is gone, if the page is to be
/// left with it.
void wait_for_end(const awaited_signals& signals, watched_family& family, bool leaves_with_program,
                  const std::function<void()>& each_second) {
  for (;;) {
    each_second();
    if (const int signal = signals.wait(1).number; signal != 0 && signal != SIGCHLD) return;
    const life state = leaves_with_program ? family.find("")->now(false)->state : life::running;
    if (state != life::running && state != life::replaced) return;
  }
}

launched_program::variables environment_of(const live_options& options) {
  launched_program::variables changed;
  if (!options.sample.empty()) changed["HEAPWRIGHT_SAMPLE"] = options.sample;
  if (options.estimate) changed["HEAPWRIGHT_PROBE"] = "estimate";
  if (options.python_objects) changed["PYTHONMALLOC"] = "malloc";
  return changed;
}

void check_ready_fd(int fd) {
  const int mode = fd < 0 ? O_WRONLY : fcntl(fd, F_GETFL);
  if (mode < 0) throw failure(exit_code::bad_input, fmt::format("--ready-fd {}: {}", fd, std::strerror(errno)));
  if ((mode & O_ACCMODE) == O_RDONLY)
    throw failure(exit_code::bad_input, fmt::format("--ready-fd {}: it cannot be written to", fd));
}

/// The program runs by now: that nobody listens is not its fault.
void tell_ready(int fd, const std::string& url) {
  if (fd < 0) return;
  const descriptor told(fd);
  const std::string line = fmt::format("{} {}\n", url, getpid());
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    tell("heapwright: --ready-fd {}: {}\n", fd, std::strerror(errno));
}

void close_all_but(int fd) {
  if (fd < 0) return;
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(fd) - 1, 0);
  close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
}

/// `started`: the segment of a program that was started; empty: none was.
std::unique_ptr<watched_family> family_of(const live_options& options, const std::filesystem::path& started,
                                          const std::optional<opened_run>& saved) {
  if (saved) return std::make_unique<watched_family>(*saved, options.wrappers);
  const std::filesystem::path path = started.empty() ? segment_of(options.pid) : started;
  if (path.empty() && !options.save.empty())
    throw failure(exit_code::bad_input, fmt::format("process {} has no segment to be saved", options.pid));
  if (path.empty() && !options.push.url.empty())
    throw failure(exit_code::bad_input,
                  fmt::format("process {} runs without the probe, whose call stacks --push sends", options.pid));
  return std::make_unique<watched_family>(watch(options.pid, path, options.wrappers), path, path.parent_path(),
                                          options.wrappers, started.empty() ? found_by::id : found_by::start);
}

/// Writes the page once; what is wrong with that must not cost what else is to be done.
class snapshot_file {
 public:
  explicit snapshot_file(std::string path) : path_(std::move(path)), is_due_(!path_.empty()) {}

  /// True: it is written now.
  bool write(const shown_run& what) {
    if (!std::exchange(is_due_, false)) return false;
    try {
      output_file file(path_);
      file.write(snapshot_page(what));
      file.finish();
      return true;
    } catch (const failure& trouble) {
      lost_ = trouble;
    }
    return false;
  }

  /// Throws `failure` if it could not be written.
  void check() const {
    if (lost_) throw *lost_;
  }

 private:
  std::string path_;
  bool is_due_;
  std::optional<failure> lost_;
};

/// Of a process or a saved run, as it is now.
int write_snapshot(const live_options& options, const std::string& advice,
                   const std::shared_ptr<const other_run>& other) {
  std::optional<opened_run> saved;
  if (!options.file.empty()) saved.emplace(options.file);
  const auto family = family_of(options, {}, saved);
  if (other) family->compare_with(other);
  std::vector<saved_process> run;
  if (!options.save.empty()) run = family->saved(options.pid != 0);
  snapshot_file snapshot(options.snapshot);
  snapshot.write({*family, advice});
  family->stop();
  if (!options.save.empty()) save_run(options.save, run);
  snapshot.check();
  return EXIT_SUCCESS;
}

}  // namespace

int live(const live_options& options) {
  if (options.list) return print_list();
  const interruptible on_closed_pipe{SIGPIPE};
  close_all_but(options.ready_fd);
  check_is_a_file("--save", options.save);
  check_replaces_none("--save", options.save, options.command);
  check_is_a_file("--snapshot", options.snapshot);
  check_replaces_none("--snapshot", options.snapshot, options.command);
  check_apart(options);
  for (const std::string& file : outputs_of(options)) check_writable(file);
  check_ready_fd(options.ready_fd);
  const std::string advice = advice_view(options.advice);
  const auto other =
      options.against.empty() ? nullptr : std::make_shared<const other_run>(options.against, options.wrappers);
  if (!options.snapshot.empty() && options.command.empty()) return write_snapshot(options, advice, other);
  const std::string token = token_for(options);
  auto push = options.push.url.empty() ? nullptr : std::make_unique<pusher>(push_target_of(options.push));

  // Listens before anything is started: a port that is taken must not cost a run of the program.
  std::unique_ptr<http_server> server;
  try {
    server = std::make_unique<http_server>(options.host, options.port);
  } catch (const std::runtime_error& trouble) {
    throw failure(exit_code::bad_input, trouble.what());
  }

  const awaited_signals signals{SIGINT, SIGTERM, SIGHUP, SIGCHLD};
  std::optional<launched_program> started;
  const std::string url = url_of(options, server->port(), token);
  bool is_address_lost = false;
  // While the program waits to be let go: it must not run where nobody can look at it.
  const auto before_start = [&](pid_t child) {
    is_address_lost = !tell_address(options, url, token);
    if (is_address_lost) kill(child, SIGKILL);
  };
  if (!options.command.empty()) started.emplace(options.command, environment_of(options), signals, before_start);
  if (is_address_lost) {
    waitpid(started->id(), nullptr, 0);
    throw lost_address();
  }
  std::optional<opened_run> saved;
  if (!options.file.empty()) saved.emplace(options.file);
  const auto family_pointer = family_of(options, started ? started->segment() : std::filesystem::path(), saved);
  watched_family& family = *family_pointer;
  if (other) family.compare_with(other);
  if (options.read_only) family.forbid_control();
  const routes answers({family, advice}, guard(options.host, server->port(), token));
  if (!started && !tell_address(options, url, token)) throw lost_address();

  std::thread serving([&] { server->run([&](const http_request& request) { return answers.answer(request); }); });
  if (opens_browser(options)) open_browser(url, signals);
  tell_ready(options.ready_fd, url);
  const std::unique_ptr<pusher> pushing = std::move(push);  // ends before what it reads does
  if (pushing) pushing->start(family, machine_name());
  unobserved_processes unobserved;
  snapshot_file snapshot(options.snapshot);
  const auto each_second = [&] {
    if (started) unobserved.tell_of_new(*started);
    if (started && started->exit_code()) {
      family.set_end(static_cast<std::uint32_t>(started->id()), started->how_it_ended());
      if (snapshot.write({family, advice})) tell("heapwright: {} is written\n", options.snapshot);
    }
    // What a wrapper has started is what the user wants to see, from its beginning.
    if (started || !options.save.empty()) family.watch_all();
  };
  if (started) {
    wait_for_end(signals, *started, options.exit_with_program, options.save, each_second);
  } else {
    wait_for_end(signals, family, options.exit_with_program, each_second);
  }
  std::vector<saved_process> run;
  if (!options.save.empty()) run = family.saved(options.pid != 0);
  snapshot.write({family, advice});
  if (pushing) pushing->finish();
  family.stop();
  server->stop();
  serving.join();
  if (started) tell_what_goes_on(*started);
  if (!options.save.empty()) save_run(options.save, run);
  snapshot.check();
  return started ? started->exit_code().value_or(EXIT_SUCCESS) : EXIT_SUCCESS;
}

}  // namespace heapwright::tool
