// `heapwright record`: writes every allocation event into a trace, of the processes of a command
// that it starts with the probe in it, or of a process that runs with a probe that does not count.
//
// The recording ends with the last process, at a limit, or when the trace cannot be written; the
// program goes on in any case. This tool waits for the end of a command that it has started, and a
// signal that asks for the end goes on to the command. Of a process that runs already a signal
// ends the recording.
#include "record.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <sys/resource.h>

#include "awaited_signals.hpp"
#include "failure.hpp"
#include "interruptible.hpp"
#include "launched_program.hpp"
#include "output_file.hpp"
#include "process_tree.hpp"
#include "quantities.hpp"
#include "recorder.hpp"
#include "segment_choice.hpp"
#include "terminal.hpp"
#include "trace_sink.hpp"

namespace heapwright::tool {
namespace {

using clock = std::chrono::steady_clock;

/// What is in the way of the recording going on; empty: nothing.
std::string limit_reached(const record_options& options, const recorder& trace, clock::time_point begun) {
  if (trace.has_failed()) return "the trace cannot be written";
  const double passed = std::chrono::duration<double>(clock::now() - begun).count();
  if (options.seconds > 0 && passed >= options.seconds) return fmt::format("after {:g} s, as asked", options.seconds);
  if (trace.is_full())
    return fmt::format("after {} byte{} of trace, as asked", options.max_bytes, options.max_bytes == 1 ? "" : "s");
  return {};
}

/// Of a trace that cannot be written to its end: what is there is good.
failure torn(const recorder& trace, const trace_sink& sink, output_file& file) {
  failure why = sink.trouble();
  const std::string kept = trace.written() > 0 ? file.keep_unfinished() : "";
  if (kept.empty()) return why;
  return {why.code(),
          fmt::format("{}; what there was room for is in {}: a torn trace, which trace, replay and advise read",
                      why.what(), kept)};
}

void finish(recorder& trace, trace_sink& sink, output_file& file, const std::string& ended,
            const record_options& options) {
  trace.end(ended);
  if (trace.has_failed()) throw torn(trace, sink, file);
  file.finish();
  const auto events = static_cast<double>(trace.events());
  tell("heapwright: {} in {}{}; {}\n", show_count_of(trace.events(), "event"), options.output,
       events > 0 ? fmt::format(" ({:.2f} bytes an event)", static_cast<double>(trace.written()) / events) : "", ended);
  if (!trace.not_recorded().empty())
    tell("heapwright: {}{}\n", trace.not_recorded().front(),
         trace.not_recorded().size() > 1
             ? fmt::format(" (`trace info` tells of {} more)", trace.not_recorded().size() - 1)
             : "");
}

int record_process(const record_options& options) {
  const awaited_signals signals{SIGINT, SIGTERM, SIGHUP};
  const recording_begin begin = recording_begin::now();
  attachment attached(options.process);
  output_file file(options.output);
  trace_sink sink(file);
  recorder trace(attached, std::ref(sink), options.max_bytes, begin);
  const auto begun = clock::now();
  tell("heapwright: recording process {} ({}); Ctrl-C ends the recording\n", options.process,
       command_of(attached.process()));
  std::string ended;
  while (ended.empty()) {
    // Asked before its rings are read.
    const bool is_another = attached.is_another_program(), is_over = is_another || attached.has_ended();
    const std::uint64_t records = trace.look();
    attached.check_records();
    ended = limit_reached(options, trace, begun);
    if (ended.empty() && is_over && !trace.has_running_processes())
      ended = is_another ? "the process has become another program" : "the process has ended";
    if (ended.empty() && !is_over && attached.is_counting()) ended = "somebody has told the probe to count";
    if (ended.empty() && signals.wait(records > 1000 ? 0 : 0.001).number != 0) ended = "the recorder was told to end";
  }
  trace.stop();
  finish(trace, sink, file, ended, options);
  return EXIT_SUCCESS;
}

/// Each recorded process takes two.
void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int record_command(const record_options& options) {
  check_is_a_file("--output", options.output);
  check_replaces_none("--output", options.output, options.command);
  // Before the file, which holds signals back too: the command gets them as they are now.
  const awaited_signals signals{SIGINT, SIGTERM, SIGHUP, SIGCHLD};
  output_file file(options.output);
  trace_sink sink(file);
  setenv("HEAPWRIGHT_RECORD", "1", 1);
  const recording_begin begin = recording_begin::now();
  adopt_orphans();
  launched_program started(options.command, {}, signals);
  allow_many_descriptors();
  const auto begun = clock::now();
  recorder trace(started.segment().parent_path(), std::ref(sink), options.max_bytes, begin);
  std::string ended;            // why the recording has; empty: it goes on
  int told_by = 0;              // the second signal
  bool is_complete = false;     // the trace
  std::optional<failure> lost;  // it cannot be complete; told when the command has ended
  const auto complete = [&] {
    is_complete = true;
    try {
      finish(trace, sink, file, ended, options);
    } catch (const failure& why) {
      lost = why;
    }
  };
  for (bool was_signalled = false;;) {
    const std::uint64_t records = ended.empty() ? trace.look() : 0;
    if (!ended.empty()) {
      trace.refuse_others();
    } else {
      ended = limit_reached(options, trace, begun);
      if (!ended.empty()) {
        trace.stop();
        complete();
      }
    }
    started.reap();
    // Asked in this order: what such a descendant has recorded by its end is found then.
    if (started.exit_code() &&
        (is_complete || (!started.has_observable_descendants() && !trace.has_running_processes())))
      break;
    const came_signal came = signals.wait(records > 1000 ? 0 : ended.empty() ? 0.001 : 0.02);
    if (came.number == 0 || came.number == SIGCHLD) continue;
    (void)started.pass_on(came);
    if (was_signalled) {
      if (ended.empty()) trace.stop();
      if (ended.empty()) ended = "the recorder was told to end";
      told_by = came.number;
      break;
    }
    was_signalled = true;
  }
  if (ended.empty()) ended = fmt::format("the command has ended ({})", started.how_it_ended());
  if (!is_complete) complete();
  if (lost) throw *lost;
  if (started.exit_code()) {
    const bool has_nothing = !trace.has_processes() && !trace.not_recorded().empty();
    return *started.exit_code() == 0 && has_nothing ? exit_code::bad_input : *started.exit_code();
  }
  tell("heapwright: the command goes on\n");
  throw interrupted{told_by};
}

}  // namespace

int record(const record_options& options) {
  const interruptible on_closed_pipe{SIGPIPE};
  return options.command.empty() ? record_process(options) : record_command(options);
}

}  // namespace heapwright::tool
