// `heapwright record`: starts a command with the probe in it, and writes every allocation event of
// its processes into a trace.
//
// The recording ends with the last process of the command, at a limit, or when the trace cannot be
// written; the command goes on in any case, and this tool waits for its end. A signal that asks for
// the end goes on to the command.
#include "record.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "awaited_signals.hpp"
#include "failure.hpp"
#include "launched_program.hpp"
#include "output_file.hpp"
#include "quantities.hpp"
#include "recorder.hpp"
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
  if (options.max_bytes > 0 && trace.written() >= options.max_bytes)
    return fmt::format("after {} of trace, as asked", show_bytes(static_cast<double>(trace.written())));
  return {};
}

}  // namespace

int record(const record_options& options) {
  check_replaces_none("--output", options.output, options.command);
  // Before the file, which holds signals back too: the command gets them as they are now.
  const awaited_signals signals{SIGINT, SIGTERM, SIGHUP, SIGCHLD};
  output_file file(options.output);
  trace_sink sink(file);
  setenv("HEAPWRIGHT_RECORD", "1", 1);
  launched_program started(options.command, {}, signals);
  const auto begun = clock::now();
  recorder trace(started.segment().parent_path(), std::ref(sink));
  std::string ended;  // why the recording has; empty: it goes on
  for (bool was_signalled = false;;) {
    const std::uint64_t records = ended.empty() ? trace.look() : 0;
    if (!ended.empty()) {
      trace.refuse_others();
    } else {
      ended = limit_reached(options, trace, begun);
      if (!ended.empty()) trace.stop();
    }
    const bool has_ended = started.exit_code().has_value();
    if (has_ended && (!ended.empty() || !trace.has_running_processes())) break;
    const came_signal came = signals.wait(records > 1000 ? 0 : ended.empty() ? 0.001 : 0.02);
    if (came.number == 0 || came.number == SIGCHLD) continue;
    if (was_signalled) {
      if (ended.empty()) trace.stop();
      ended = "the recorder was told to end";
      break;
    }
    was_signalled = true;
    (void)started.pass_on(came);
  }
  if (ended.empty()) ended = fmt::format("the command has ended ({})", started.how_it_ended());
  trace.end(ended);
  if (trace.has_failed()) throw sink.trouble();
  file.finish();
  tell("heapwright: {} events in {} ({:.2f} bytes an event); {}\n", trace.events(), options.output,
       static_cast<double>(trace.written()) / static_cast<double>(std::max<std::uint64_t>(trace.events(), 1)), ended);
  return started.exit_code().value_or(EXIT_SUCCESS);
}

}  // namespace heapwright::tool
