// `heapwright leaks`: runs a command, looks at the memory of each of its processes at its end, and
// tells what was lost.
//
// Ctrl-C reaches the command too, as it does without this tool, which waits for the command's end.
// Where the command has ended and processes that it has started have not, ctrl-C ends the wait:
// they go on without this tool.
#include "leaks.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <sys/wait.h>

#include "awaited_signals.hpp"
#include "failure.hpp"
#include "interruptible.hpp"
#include "launched_program.hpp"
#include "leak_report.hpp"
#include "leak_scan.hpp"
#include "output_file.hpp"
#include "process_tracer.hpp"
#include "saved_run.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

using namespace std::chrono_literals;

function_patterns suppressions_of(const leaks_options& options) {
  function_patterns result;
  for (const std::string& pattern : options.suppressed) result.add(pattern);
  for (const std::string& file : options.suppression_files) result.add_file(file);
  return result;
}

/// A name that is not quite that of the report, as a rule. Files may have what only other programs
/// need.
std::vector<std::string> idle_suppressions(const leaks_options& options, const std::vector<named_leaks>& processes) {
  std::vector<std::string> idle = options.suppressed;
  std::erase_if(idle, [&](const std::string& pattern) {
    return std::ranges::any_of(processes, [&](const named_leaks& p) {
      return std::ranges::find(p.sites, pattern, &named_site::suppressed_by) != p.sites.end();
    });
  });
  return idle;
}

int shell_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

struct observed_command {
  command_leaks leaks;
  int exit_code = 0;
};

/// Started by a report of a mistake, not by the program.
bool names_frames(const ending_process& process) {
  std::ifstream environment(fmt::format("/proc/{}/environ", process.id));
  for (std::string entry; std::getline(environment, entry, '\0');)
    if (entry == "HEAPWRIGHT_NAMES_FRAMES=1") return true;
  return false;
}

std::string executable_at_end(const ending_process& process) {
  std::error_code unreadable;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process.id), unreadable).string();
}

observed_command observe(const leaks_options& options, const function_patterns& suppressed) {
  observed_command result;
  std::optional<named_leaks> own;
  pid_t command = 0;
  process_tracer tracer([&](const ending_process& ending) {
    try {
      auto found = scan(ending);
      if (!found) {
        if (!has_probe(ending) && !names_frames(ending))
          result.leaks.unobserved.push_back({ending.id, executable_at_end(ending)});
      } else if (ending.id == command)
        own = named(std::move(*found), suppressed, options.all);
      else
        result.leaks.processes.push_back(named(std::move(*found), suppressed, options.all));
    } catch (const segment::bad_segment& trouble) {
      tell("heapwright: process {}: {}\n", ending.id, trouble.what());
    }
  });
  std::string refused;
  const awaited_signals signals{SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD};
  const launched_program started(options.command, {{"HEAPWRIGHT_SAMPLE", "1"}}, signals, [&](pid_t child) {
    command = child;
    if (!tracer.follow(child)) refused = std::strerror(errno);
  });
  if (!refused.empty()) {
    kill(command, SIGKILL);
    waitpid(command, nullptr, 0);
    throw failure(exit_code::bad_input,
                  fmt::format("the command cannot be traced (ptrace: {}): its memory could not be "
                              "looked at; `heapwright live --save FILE` and `heapwright leaks "
                              "FILE` tell what is not freed without that",
                              refused));
  }
  bool has_told = false;
  while (tracer.handle_reports()) {
    const bool has_ended = tracer.status_of(command).has_value();
    if (has_ended && !has_told) {
      // Asked each time: a process that was forked last may be reported after the command's end.
      const std::size_t left = tracer.running_processes();
      has_told = left > 0;
      if (has_told)
        tell("heapwright: the command has ended, {} of its processes still {}; ctrl-C ends the wait\n", left,
             left == 1 ? "runs" : "run");
    }
    const std::chrono::duration<double> patience = tracer.patience().value_or(1s);
    const came_signal came = signals.wait(patience.count());
    if (came.number == 0 || came.number == SIGCHLD) continue;
    if (has_ended) break;
    (void)started.pass_on(came);
  }
  result.exit_code = shell_status(tracer.status_of(command).value_or(0));
  if (own) result.leaks.processes.insert(result.leaks.processes.begin(), std::move(*own));
  if (result.leaks.processes.empty())
    throw failure(result.exit_code != 0 ? result.exit_code : exit_code::bad_input,
                  why_no_segment("the command", started.folder()));
  return result;
}

std::string report_of(const command_leaks& command, const leaks_options& options, int exit_code) {
  if (options.json) return leak_json(command, exit_code);
  return leak_text(command, {.all = options.all, .limit = options.limit});
}

int leaks_of_segment(const leaks_options& options) {
  const function_patterns suppressed = suppressions_of(options);
  check_replaces_none("-o", options.output, {options.segment});
  check_writable(options.output);
  try {
    const opened_run run(options.segment);
    command_leaks all;
    for (const saved_process& p : run.processes())
      all.processes.push_back(named(unfreed_in(p.segment), suppressed, options.all));
    all.idle_suppressions = idle_suppressions(options, all.processes);
    write_outputs({{options.output.empty() ? "-" : options.output, report_of(all, options, EXIT_SUCCESS)}},
                  exit_code::bad_input);
  } catch (const segment::bad_segment& trouble) {
    throw failure(exit_code::bad_input, trouble.what());
  }
  return EXIT_SUCCESS;
}

}  // namespace

int leaks(const leaks_options& options) {
  if (options.command.empty()) return leaks_of_segment(options);
  const interruptible on_closed_pipe{SIGPIPE};
  const function_patterns suppressed = suppressions_of(options);
  check_replaces_none("-o", options.output, options.command);
  check_writable(options.output);
  observed_command observed = observe(options, suppressed);
  observed.leaks.idle_suppressions = idle_suppressions(options, observed.leaks.processes);
  int result = observed.exit_code;
  for (const named_leaks& p : observed.leaks.processes)
    if (p.lost.blocks > 0) result = exit_code::judged_no;
  const std::string report = report_of(observed.leaks, options, result);
  if (!options.output.empty()) {
    try {
      write_outputs({{options.output, report}}, exit_code::bad_input);
    } catch (const failure&) {
      tell_text(report);  // the run may have been long
      throw;
    }
  } else if (!tell_text(report)) {
    throw failure(exit_code::bad_input,
                  fmt::format("the report cannot be written to standard error: {}", std::strerror(errno)));
  }
  return result;
}

}  // namespace heapwright::tool
