#include "subcommands.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "advise.hpp"
#include "commands.hpp"
#include "comparison.hpp"
#include "diff.hpp"
#include "failure.hpp"
#include "fit.hpp"
#include "leaks.hpp"
#include "live.hpp"
#include "nearest_word.hpp"
#include "option_values.hpp"
#include "record.hpp"
#include "replay.hpp"
#include "top.hpp"
#include "trace_slice.hpp"
#include "trace_view.hpp"
#include "version.hpp"

namespace heapwright::tool {
namespace {

failure wrong(const std::string& sentence) { return {exit_code::bad_input, sentence}; }

/// The command to run is the first word that is no option of ours, and all that follows.
void take_command(CLI::App& app, std::vector<std::string>& command) {
  app.add_option("COMMAND", command, "The command and its arguments")->required()->take_all();
  app.positionals_at_end();
}

/// A word of digits alone is a process.
void what_to_watch(const std::vector<std::string>& words, pid_t& process, std::vector<std::string>& command) {
  const auto is_number = [](const std::string& word) {
    return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
  };
  if (words.size() > 1 && is_number(words[0]) && words[1].starts_with('-'))
    throw CLI::ValidationError("PID", fmt::format("{} stands behind the process id; options come before it", words[1]));
  const bool is_process = words.size() == 1 && is_number(words[0]);
  if (is_process)
    process = words[0].size() <= 9 ? std::stoi(words[0]) : 0;
  else
    command = words;
  if (is_process && process == 0) throw CLI::ValidationError("PID", words[0] + " is no process");
}

/// A word behind `--` is a command. Without that a single word may be a segment: a file that cannot
/// be executed.
void what_has_leaked(const std::vector<std::string>& words, bool is_command, leaks_options& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool may_be_file = !is_command && !words.empty();
  const auto is_saved = [&] {
    return fs::path(words[0]).extension() == ".segment" || access(words[0].c_str(), X_OK) != 0;
  };
  if (may_be_file && words.size() > 1 && words[1].starts_with('-') && fs::is_regular_file(words[0], ignored) &&
      is_saved())
    throw CLI::ValidationError("FILE", fmt::format("{} stands behind the file; options come before it", words[1]));
  const bool is_file = may_be_file && words.size() == 1 &&
                       (words[0].find('/') != std::string::npos || fs::is_regular_file(words[0], ignored));
  if (is_file && is_saved())
    options.segment = words[0];
  else
    options.command = words;
}

void add_wrappers(CLI::App& app, function_patterns& wrappers) {
  app.add_option_function<std::string>(
         "--wrapper", [&wrappers](const std::string& pattern) { wrappers.add(pattern); },
         "This function allocates for others: its caller is the call site; * and ? stand for anything; repeatable")
      ->type_name("FUNCTION")
      ->trigger_on_parse()
      ->allow_extra_args(false);
}

/// The probe would go by the default, which is not what was meant.
void check_sample_of_environment() {
  const char* const word = std::getenv("HEAPWRIGHT_SAMPLE");
  if (word == nullptr || *word == '\0') return;
  const std::string complaint = check_sample(word);
  if (!complaint.empty()) throw failure(exit_code::bad_input, "HEAPWRIGHT_SAMPLE: " + complaint);
}

void add_allocator_options(CLI::App& app, std::vector<std::string>& with, std::vector<std::string>& only) {
  app.add_option(
         "--with", with,
         "One more allocator: a library, a recipe (.hpp) to build one from, or one by name (jemalloc, hardened, ...); "
         "NAME=LIB names its row; repeatable")
      ->type_name("LIB")
      ->allow_extra_args(false);
  const auto add_names = [&only](const std::vector<std::string>& lists) {
    for (const std::string& list : lists)
      for (std::string& name : split_names(list)) only.push_back(std::move(name));
  };
  app.add_option_function<std::vector<std::string>>("--only", add_names,
                                                    "Only these (glibc is always there): heapwright,jemalloc,...")
      ->type_name("NAMES")
      ->check(check_names)
      ->allow_extra_args(false);
}

/// Of a trace. Nothing for an empty text.
std::optional<std::uint32_t> process_number(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(text));
}

void add_server_options(CLI::App& app, server_options& options) {
  const char* const group = "Servers";
  CLI::Option* const driver =
      app.add_option("--driver", options.driver,
                     "The command is a server: start it, run this shell command, measure, end it with SIGTERM")
          ->type_name("COMMAND")
          ->group(group);
  CLI::Option* const port = app.add_option("--ready-port", options.ready_port,
                                           "The server is ready when it answers on this TCP port of loopback")
                                ->type_name("PORT")
                                ->transform(from_to(1, 65535));
  CLI::Option* const line = app.add_option("--ready-line", options.ready_line,
                                           "The server is ready when it prints a line that this expression matches")
                                ->type_name("REGEX")
                                ->excludes(port);
  CLI::Option* const ready_timeout =
      app.add_option("--ready-timeout", options.ready_timeout_seconds, "How long it may take to be ready")
          ->type_name("SECONDS")
          ->transform(from_to(0.001, 1e9))
          ->capture_default_str();
  CLI::Option* const end_timeout = app.add_option("--end-timeout", options.end_timeout_seconds,
                                                  "How long it may take to end after SIGTERM; then SIGKILL ends it")
                                       ->type_name("SECONDS")
                                       ->transform(from_to(0.001, 1e9))
                                       ->capture_default_str();
  CLI::Option* const figure =
      app.add_option("--figure", options.figures,
                     "A figure that the driver prints: NAME=REGEX with a group, or NAME=json:POINTER; NAME:higher=... "
                     "if higher is better; repeatable")
          ->type_name("FIGURE")
          ->allow_extra_args(false);
  for (CLI::Option* const option : {port, line, ready_timeout, end_timeout, figure})
    option->needs(driver)->group(group);
}

/// Of those that run a command to measure it. `timeout`: what that option does.
template <class Options>
void add_measured_command(CLI::App& app, Options& options, const char* timeout) {
  app.add_option("--timeout", options.timeout_seconds, timeout)->type_name("SECONDS")->transform(from_to(0.001, 1e9));
  app.add_flag("--ignore-output", options.ignore_output, "Do not compare what the runs print");
  add_server_options(app, options.server);
  take_command(app, options.command);
}

struct run_words : run_options {
  std::string statistics_word;
};

subcommand add_run(CLI::App& app) {
  const auto given = std::make_shared<run_words>();
  run_words& options = *given;
  CLI::App& sub = *app.add_subcommand("run", "Run a command on heapwright's malloc");
  sub.add_flag("--stats{command}", options.statistics_word,
               "Print the heap's statistics when the command has ended. command, or no value: of its own process; "
               "all: and a "
               "table of all its processes")
      ->check(check_statistics);
  CLI::Option* const with =
      sub.add_option("--with", options.library,
                     "Another allocator to preload instead: a library, or one by name: jemalloc, glibc, ...")
          ->type_name("LIB");
  sub.add_flag("--hardened", options.is_hardened,
               "Preload libheapwright-hardened: what the command does wrong with its memory ends it, by name")
      ->excludes(with);
  sub.add_option("--guard-sample", options.guard_sample,
                 "Guard one in N allocations, on average: a read or write beyond it or after its end ends the command, "
                 "with a report; 0: none")
      ->type_name("N")
      ->transform(from_to(0, most_guard_interval))
      ->excludes(with);
  take_command(sub, options.command);
  sub.footer(
      "Exit code: the command's own; 125 if no allocator can be put under it, 126 if it cannot be executed, 127 "
      "if it is not found.");
  return {&sub, [given] {
            if (!given->statistics_word.empty())
              given->statistics =
                  given->statistics_word == "all" ? wanted_statistics::of_all_processes : wanted_statistics::of_command;
            return run(*given);
          }};
}

subcommand add_compare(CLI::App& app) {
  const auto given = std::make_shared<compare_options>();
  compare_options& options = *given;
  CLI::App& sub = *app.add_subcommand("compare", "Run a command under several allocators, side by side");
  sub.add_option("--rounds", options.rounds, "Measured rounds, after one warm-up")
      ->transform(from_to(2, most_rounds))
      ->capture_default_str();
  sub.add_option("--baseline", options.baseline, "The row that ratios are to")
      ->type_name("NAME")
      ->capture_default_str();
  sub.add_option("--same-within", options.same_within_percent,
                 "A ratio is the same as 1 if its interval is within so many percent of it")
      ->type_name("PERCENT")
      ->transform(from_to(0.1, 50))
      ->capture_default_str();
  add_allocator_options(sub, options.with, options.only);
  sub.add_option("--json", options.json, "Write all results as JSON; - for standard output")->type_name("FILE");
  sub.add_option("--html", options.html, "Write a page with plots; - for standard output")->type_name("FILE");
  add_measured_command(sub, options, "End a run that takes longer; of a server, its driver");
  sub.footer(
      "Exit code: 0 if every allocator ran the command well and alike, 1 if one did not (the table says "
      "which), by the signal if interrupted (after telling what the complete rounds say), 125 for bad input, 126 if "
      "the command cannot be executed, 127 if it is not found.");
  return {&sub, [given] { return compare(*given); }};
}

subcommand add_build(CLI::App& app) {
  const auto given = std::make_shared<build_options>();
  build_options& options = *given;
  CLI::App& sub = *app.add_subcommand("build", "Make a malloc from a recipe of your own");
  sub.add_option("HEADER", options.header, "Defines it: inline constexpr heapwright::recipe NAME = {...};")->required();
  sub.add_option("-o,--output", options.output, "The library to make")->type_name("LIB")->required();
  sub.add_option("--recipe", options.recipe, "Which recipe, if the header has several")->type_name("NAME");
  sub.add_option("--compiler", options.compiler, "Instead of $CXX, or else c++; needs C++20")->type_name("COMMAND");
  sub.add_flag("--check", options.check, "Try it: conformance and stress tests");
  sub.footer(
      "Exit code: 0 if the library was made (and tried, if asked), 1 if a test failed (nothing is written then), 125 "
      "if it could not be made, or the answer could not be written.");
  return {&sub, [given] { return build(*given); }};
}

struct live_words : live_options {
  std::vector<std::string> words;  ///< the command, or the process id
};

void add_push(CLI::App& sub, push_options& push) {
  CLI::Option* const url = sub.add_option("--push", push.url,
                                          "Send heap profiles to a Pyroscope (pyroscope+http://HOST:PORT) or an OTLP "
                                          "receiver (otlp+http://HOST:PORT), while the program runs and at its end")
                               ->type_name("URL");
  sub.add_option("--push-every", push.every_seconds, "Seconds between two profiles of a process")
      ->transform(from_to(1, 3600))
      ->capture_default_str()
      ->needs(url);
  sub.add_option("--push-header", push.headers,
                 "With each request, as 'Authorization: Bearer TOKEN'; repeatable. HEAPWRIGHT_PUSH_HEADERS keeps a "
                 "secret out of ps")
      ->type_name("HEADER")
      ->allow_extra_args(false)
      ->needs(url);
  sub.add_option("--push-label", push.labels,
                 "With each profile, as region=eu; service.name is the program's name unless it is given here; "
                 "repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->needs(url);
}

subcommand add_live(CLI::App& app) {
  const auto given = std::make_shared<live_words>();
  live_words& options = *given;
  CLI::App& sub = *app.add_subcommand("live", "Watch a program's heap in the browser");
  sub.add_option("--port", options.port, "Port of the page; 0 lets the system choose")
      ->transform(from_to(0, 65535))
      ->capture_default_str();
  sub.add_option("--host", options.host, "Address to listen on; any but loopback needs a token")->capture_default_str();
  sub.add_option("--token", options.token,
                 "Ask viewers for this token; by default for none on loopback, and for a random one elsewhere");
  sub.add_option("--sample", options.sample,
                 "Bytes between two sampled allocations, on average; 1 for all, 0 for none; auto (the default): as "
                 "many samples as "
                 "0.8 % of the program's processor time allows")
      ->type_name("BYTES")
      ->check(check_sample);
  sub.add_flag("--estimate", options.estimate,
               "Count samples alone: the program is slowed down less, and all figures are estimates");
  sub.add_flag("--python-objects", options.python_objects,
               "A Python asks malloc for its small objects too, so that these are seen; it is slower and larger then");
  sub.add_option("--file", options.file, "A run that --save has kept, or the segment that a program has left")
      ->type_name("FILE");
  sub.add_option("--save", options.save,
                 "Keep the figures of all processes, the time line and the memory map, for --file, top, diff and leaks")
      ->type_name("FILE");
  sub.add_option("--against", options.against,
                 "A run that --save has kept: the page shows what is more or less than there (growth since)")
      ->type_name("FILE");
  sub.add_option(
         "--snapshot", options.snapshot,
         "Write the page, as it is, into one HTML file that needs no server: at the end of a COMMAND, at once of "
         "a PID or a --file")
      ->type_name("FILE");
  add_push(sub, options.push);
  sub.add_option("--advice", options.advice, "Show beside the call sites what `heapwright advise --json` has written")
      ->type_name("FILE");
  add_wrappers(sub, options.wrappers);
  sub.add_flag("--list", options.list, "Which processes can be watched");
  sub.add_flag("--read-only", options.read_only,
               "Viewers may only look: no marks, no switch for counting, no other interval between samples");
  sub.add_flag("--no-browser", options.no_browser,
               "Only print the address; otherwise xdg-open opens it where DISPLAY or WAYLAND_DISPLAY is set");
  sub.add_flag("--exit-with-program", options.exit_with_program, "End when the program ends");
  sub.add_option("--ready-fd", options.ready_fd,
                 "Write the address and this process's id to this file descriptor when the page can be seen")
      ->transform(from_to(3, 1 << 20));
  sub.add_option("COMMAND", options.words, "The command and its arguments, or the id of a process that has the probe")
      ->take_all();
  sub.positionals_at_end();
  sub.footer(
      "Exit code: the command's own where one was started, 0 otherwise; 125 for bad input, 126 if the command cannot "
      "be "
      "executed, 127 if it is not found.");
  return {&sub, [given, &sub] {
            if (given->list && sub.count_all() > 2) throw wrong("live: --list takes no other options");
            what_to_watch(given->words, given->pid, given->command);
            const int said = int{!given->words.empty()} + int{given->list} + int{!given->file.empty()};
            if (said != 1) throw wrong("live: say one of COMMAND, PID, --list and --file FILE");
            if (!given->push.url.empty() && !given->file.empty())
              throw wrong("live: --push is for a COMMAND or a PID: what --file has is over");
            if (!given->push.url.empty() && !given->snapshot.empty() && given->command.empty())
              throw wrong("live: --snapshot of a PID is written at once; --push goes without it");
            if (given->python_objects && given->command.empty())
              throw wrong("live: --python-objects is for a COMMAND: a Python that runs has chosen already");
            if (given->estimate && given->command.empty())
              throw wrong("live: --estimate is for a COMMAND: a process that runs counts as it began");
            if (given->estimate && given->sample == "0")
              throw wrong("live: --estimate needs samples, and --sample 0 takes none");
            if (!given->command.empty() && given->sample.empty()) check_sample_of_environment();
            return live(*given);
          }};
}

struct top_words : top_options {
  std::string word;  ///< the process id, or a file
};

subcommand add_top(CLI::App& app) {
  const auto given = std::make_shared<top_words>();
  top_words& options = *given;
  CLI::App& sub = *app.add_subcommand("top", "Watch a program's heap in the terminal");
  sub.add_option("PID", options.word, "A process that has the probe; or a file, as --file");
  sub.add_option("--process", options.pid,
                 "Which process of a saved run; by default the one whose live bytes had the highest peak")
      ->type_name("ID")
      ->transform(process_id());
  sub.add_option("--file", options.file, "A run that `live --save` has kept, or a segment")->type_name("FILE");
  sub.add_option("--every", options.every_seconds, "Seconds between two looks")
      ->transform(from_to(0.1, 3600))
      ->capture_default_str();
  add_wrappers(sub, options.wrappers);
  sub.add_flag("--once", options.once, "One look, as text");
  sub.footer("Exit code: 0; 125 for bad input. q or ctrl-C ends it.");
  return {&sub, [given] {
            const bool is_process = !given->word.empty() && check_process_id(given->word).empty();
            if (given->word.empty() == given->file.empty()) throw wrong("top: say one of PID and --file FILE");
            if (given->pid != 0 && is_process) throw wrong("top: --process chooses from a saved run");
            if (!given->word.empty() && !is_process && !std::filesystem::exists(given->word))
              throw wrong(fmt::format("top: {} is neither the id of a process nor a file", given->word));
            if (is_process)
              given->pid = std::stoi(given->word);
            else if (given->file.empty())
              given->file = given->word;
            return top(*given);
          }};
}

subcommand add_diff(CLI::App& app) {
  const auto given = std::make_shared<diff_options>();
  diff_options& options = *given;
  CLI::App& sub = *app.add_subcommand("diff", "What has changed from one observed run to another");
  sub.add_option("BEFORE", options.before, "A run that `live --save` has kept, or a segment")->required();
  sub.add_option("AFTER", options.after, "Another")->required();
  sub.add_option("--fail-if", options.fail_if, "As peak>+5%, live>+10MiB, allocations>1000; repeatable")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
  sub.add_option("--html", options.html, "Write a page that shows AFTER, compared with BEFORE, into this file")
      ->type_name("FILE");
  add_wrappers(sub, options.wrappers);
  sub.add_option("--sites", options.sites, "List at most so many call sites")
      ->transform(from_to(0, 1'000'000))
      ->capture_default_str();
  sub.footer("Exit code: 0; 1 if a condition is so; 125 for bad input.");
  return {&sub, [given] { return diff(*given); }};
}

struct leaks_words : leaks_options {
  std::vector<std::string> words;  ///< the command, or the segment
};

/// `is_command`: the command line has a `--`.
subcommand add_leaks(CLI::App& app, bool is_command) {
  const auto given = std::make_shared<leaks_words>();
  leaks_words& options = *given;
  CLI::App& sub = *app.add_subcommand("leaks", "What a program has not freed at its end, and what of it is lost");
  sub.add_option("--suppress", options.suppressed,
                 "Not what is allocated in or below this function; * and ? stand for anything; repeatable")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  sub.add_option("--suppressions", options.suppression_files, "A file of such names, one a line; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub.add_flag("--all", options.all, "Also what is still reachable, and what is indirectly lost, by call stack");
  sub.add_option("--limit", options.limit, "List at most so many call stacks of a process and kind")
      ->transform(from_to(0, 1'000'000))
      ->capture_default_str();
  sub.add_flag("--json", options.json, "The report as JSON");
  sub.add_option("-o,--output", options.output,
                 "Where the report goes, - for stdout; by default to stderr for a command, to stdout for a saved run")
      ->type_name("FILE");
  sub.add_option("COMMAND", options.words, "The command and its arguments; or a run that `live --save` has kept")
      ->required()
      ->take_all();
  sub.positionals_at_end();
  sub.footer(
      "Exit code: 1 if something is definitely lost; otherwise the command's own, 0 for a saved run; 125 for bad "
      "input, "
      "126 if the command cannot be executed, 127 if it is not found.");
  return {&sub, [given, is_command] {
            what_has_leaked(given->words, is_command, *given);
            return leaks(*given);
          }};
}

struct record_words : record_options {
  std::vector<std::string> words;  ///< the command, or the process id
};

subcommand add_record(CLI::App& app) {
  const auto given = std::make_shared<record_words>();
  record_words& options = *given;
  CLI::App& sub = *app.add_subcommand("record", "Write every allocation event of a program into a trace");
  sub.add_option("-o,--output", options.output, "The trace")->type_name("FILE")->required();
  sub.add_option("--seconds", options.seconds, "Record no longer; the command goes on")->transform(from_to(0.001, 1e9));
  sub.add_option("--max-bytes", options.max_bytes, "Record no longer than until the trace has so many")
      ->type_name("BYTES")
      ->transform(size_in_bytes());
  sub.add_option("COMMAND", options.words,
                 "The command and its arguments; or the id of a process whose probe does not count")
      ->required()
      ->take_all();
  sub.positionals_at_end();
  sub.footer(
      "Exit code: the command's own, 0 for a process; 125 for bad input, 126 if the command cannot be executed, 127 if "
      "it is not "
      "found.");
  return {&sub, [given] {
            what_to_watch(given->words, given->process, given->command);
            return record(*given);
          }};
}

struct trace_words : slice_options {
  std::string what;
  std::string process_word;
};

subcommand add_trace(CLI::App& app) {
  const auto given = std::make_shared<trace_words>();
  trace_words& options = *given;
  CLI::App& sub = *app.add_subcommand("trace", "What is in a trace; a piece of it");
  sub.add_option("WHAT", options.what, "info, dump or slice")->required();
  sub.add_option("FILE", options.trace, "The trace");
  sub.add_option("-o,--output", options.output, "Of slice: the piece, a trace too")->type_name("FILE");
  sub.add_option("--from", options.from_seconds, "Of slice: events from then on")
      ->type_name("SECONDS")
      ->transform(from_to(0, 1e9));
  sub.add_option("--to", options.to_seconds, "Of slice: events before then")
      ->type_name("SECONDS")
      ->transform(from_to(0, 1e9));
  sub.add_option("--process", options.process_word, "Of slice: this process alone, as info numbers them")
      ->type_name("N")
      ->transform(from_to(0, 1'000'000'000));
  sub.footer("Exit code: 0; 1 if the trace is torn; 125 for bad input.");
  return {&sub, [given, &sub] {
            const std::vector<std::string> known{"info", "dump", "slice"};
            if (std::ranges::find(known, given->what) == known.end()) {
              const std::string_view meant = nearest_word(given->what, known);
              throw wrong(fmt::format("trace: say info, dump or slice, not {}{}", given->what,
                                      meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
            }
            if (given->trace.empty()) throw wrong(fmt::format("trace {}: FILE is missing", given->what));
            if (given->what == "slice") {
              if (given->output.empty()) throw wrong("trace slice: -o FILE is missing");
              given->process = process_number(given->process_word);
              return trace_slice(*given);
            }
            if (sub.count_all() > 3) throw wrong(fmt::format("trace {} takes a trace and no options", given->what));
            return given->what == "info" ? trace_info(given->trace) : trace_dump(given->trace);
          }};
}

struct replay_words : replay_options {
  std::string process_word;
};

subcommand add_replay(CLI::App& app) {
  const auto given = std::make_shared<replay_words>();
  replay_words& options = *given;
  CLI::App& sub = *app.add_subcommand("replay", "What if: a trace under other mallocs, memory and time");
  sub.add_option("TRACE", options.trace, "The trace of `heapwright record`")->required();
  add_allocator_options(sub, options.with, options.only);
  sub.add_option("--process", options.process_word, "The process, as `heapwright trace info` numbers them")
      ->type_name("N")
      ->transform(from_to(0, 1'000'000'000));
  CLI::Option& rounds = *sub.add_option("--rounds", options.rounds, "Rounds at full speed, for the time")
                             ->transform(from_to(1, most_rounds))
                             ->capture_default_str();
  CLI::Option& only_memory =
      *sub.add_flag("--memory", options.only_memory, "Only the memory: in turns, on the recorded clock")
           ->excludes(&rounds);
  sub.add_flag("--time", options.only_time, "Only the time: all threads at full speed")->excludes(&only_memory);
  sub.add_flag("--count", options.counts, "Count instructions too, by callgrind: exact, and slow");
  sub.add_flag("--touch-all", options.touch_all, "Touch blocks in full, not as the program did");
  sub.add_option("--json", options.json, "Write the figures as JSON; - for standard output")->type_name("FILE");
  sub.add_option("--html", options.html, "Write a page with plots; - for standard output")->type_name("FILE");
  sub.footer("Exit code: 0; 1 if a malloc failed; 125 for bad input.");
  return {&sub, [given] {
            given->process = process_number(given->process_word);
            return replay(*given);
          }};
}

struct advise_words : advise_options {
  std::string process_word;
};

subcommand add_advise(CLI::App& app) {
  const auto given = std::make_shared<advise_words>();
  advise_words& options = *given;
  CLI::App& sub =
      *app.add_subcommand("advise", "What the kit could do for a program, by call site, and what that would save");
  sub.add_option("TRACE", options.trace, "The trace of `heapwright record`")->required();
  sub.add_option("--process", options.process_word, "The process, as `heapwright trace info` numbers them")
      ->type_name("N")
      ->transform(from_to(0, 1'000'000'000));
  sub.add_option("--rounds", options.rounds, "Rounds of each replay, for the time")
      ->transform(from_to(2, most_rounds))
      ->capture_default_str();
  add_wrappers(sub, options.wrappers);
  sub.add_option("--json", options.json, "Write the advice as JSON; - for standard output")->type_name("FILE");
  sub.add_option("--html", options.html, "Write a page; - for standard output")->type_name("FILE");
  sub.footer("Exit code: 0, also where there is no advice; 1 if a replay failed; 125 for bad input.");
  return {&sub, [given] {
            given->process = process_number(given->process_word);
            return advise(*given);
          }};
}

struct fit_words : fit_options {
  std::string goal_word = "both";
  std::vector<std::string> input_words;
};

subcommand add_fit(CLI::App& app) {
  const auto given = std::make_shared<fit_words>();
  fit_words& options = *given;
  CLI::App& sub = *app.add_subcommand("fit", "Find the recipe that fits a program, and prove it");
  sub.add_option("--for", options.goal_word, "What is to gain: time, memory, both, or latency (of a driver's figures)")
      ->type_name("GOAL")
      ->check(check_goal)
      ->capture_default_str();
  sub.add_option("--minutes", options.minutes, "How long it may take, about")
      ->transform(from_to(0.1, 10'000))
      ->capture_default_str();
  sub.add_option("-o,--output", options.output, "The folder of recipe.hpp, libfitted.so and report.html")
      ->type_name("FOLDER")
      ->capture_default_str();
  sub.add_option("--json", options.json, "Write the answer as JSON; - for standard output")->type_name("FILE");
  sub.add_option("--input", options.input_words,
                 "Prove on this command too (on this driver, where there is one); the recipe comes from COMMAND alone; "
                 "repeatable")
      ->type_name("COMMAND")
      ->allow_extra_args(false);
  add_allocator_options(sub, options.with, options.only);
  sub.add_option("--compiler", options.compiler, "Instead of $CXX, or else c++; needs C++20")->type_name("COMMAND");
  add_measured_command(sub, options, "End a run that takes longer; by default a third of --minutes");
  sub.footer(
      "Exit code: 0 for every verdict; 1 if the command fails, or a result cannot be written; by the signal if "
      "interrupted (after telling what is known), 125 for bad input, 126 if the command cannot be executed, 127 if it "
      "is "
      "not found.");
  return {&sub, [given] {
            given->goal = goal_named(given->goal_word);
            for (const std::string& text : given->input_words)
              given->inputs.push_back(given->server.driver.empty() ? CLI::detail::split_up(text)
                                                                   : std::vector<std::string>{text});
            return fit(*given);
          }};
}

subcommand add_info(CLI::App& app) {
  const auto given = std::make_shared<info_options>();
  info_options& options = *given;
  CLI::App& sub = *app.add_subcommand("info", "Is it loaded, which version, which options, how much memory and where");
  sub.add_option("PID", options.pid, "The process; without one, tells about this installation")
      ->transform(process_id());
  sub.add_flag("--json", options.json, "As JSON");
  sub.footer("Exit code: 0 if heapwright's malloc is loaded, 1 if it is not, 2 if that cannot be found out.");
  return {&sub, [given] { return info(*given); }};
}

}  // namespace

std::vector<subcommand> add_subcommands(CLI::App& app, const std::vector<std::string>& words) {
  app.name("heapwright");
  app.description("heapwright " HEAPWRIGHT_VERSION
                  ": run programs on heapwright's malloc, compare it with others, look into a process that runs on it, "
                  "make a malloc of your own.");
  app.footer("heapwright help SUBCOMMAND, or heapwright SUBCOMMAND --help, lists the options of one.");
  app.set_version_flag("-V,--version", version_text(), "Tell version, revision and how this was built");
  app.set_help_flag("-h,--help", "This text");
  app.require_subcommand(1);

  const bool is_command = std::ranges::find(words, "--") != words.end();
  return {add_run(app),
          add_compare(app),
          add_build(app),
          add_live(app),
          add_top(app),
          add_diff(app),
          add_leaks(app, is_command),
          add_record(app),
          add_trace(app),
          add_replay(app),
          add_advise(app),
          add_fit(app),
          add_info(app)};
}

}  // namespace heapwright::tool
