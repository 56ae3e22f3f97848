// The command line: which subcommand, with which options; everything else is theirs.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <type_traits>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "awaited_signals.hpp"
#include "command_words.hpp"
#include "commands.hpp"
#include "comparison.hpp"
#include "diff.hpp"
#include "failure.hpp"
#include "fit.hpp"
#include "leaks.hpp"
#include "live.hpp"
#include "record.hpp"
#include "replay.hpp"
#include "terminal.hpp"
#include "top.hpp"
#include "trace_slice.hpp"
#include "trace_view.hpp"
#include "version.hpp"

namespace {

using namespace heapwright::tool;

/// The command to run is the first word that is no option of ours, and all that follows.
void take_command(CLI::App& app, std::vector<std::string>& command) {
  app.add_option("COMMAND", command, "The command and its arguments")->required()->take_all();
  app.positionals_at_end();
}

/// A word of digits alone is a process.
void what_to_watch(const std::vector<std::string>& words, live_options& options) {
  const auto is_number = [](const std::string& word) {
    return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
  };
  if (words.size() > 1 && is_number(words[0]) && words[1].starts_with('-'))
    throw CLI::ValidationError("PID", fmt::format("{} stands behind the process id; options come before it", words[1]));
  const bool is_process = words.size() == 1 && is_number(words[0]);
  if (is_process)
    options.pid = words[0].size() <= 9 ? std::stoi(words[0]) : 0;
  else
    options.command = words;
  if (is_process && options.pid == 0) throw CLI::ValidationError("PID", words[0] + " is no process");
  const int said = int{!words.empty()} + int{options.list} + int{!options.file.empty()};
  if (said != 1) throw failure(exit_code::bad_input, "live: say one of COMMAND, PID, --list and --file FILE");
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

/// What the parser says of a value.
std::string complaint_about(const CLI::App& app, const CLI::ParseError& error) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? error.what() : fmt::format("{}: {}", subcommands.front()->get_name(), error.what());
}

/// "glibc, heapwright" is a list of two.
std::string without_spaces_around(const std::string& word) { return CLI::detail::trim_copy(word); }

/// An element of a list.
std::string check_not_empty(const std::string& word) {
  return word.find_first_not_of(' ') == std::string::npos ? "a name in the list is empty" : "";
}

/// `--list=yes` is refused for flags that have no values.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::App* const subcommand : app.get_subcommands(nullptr))
    for (CLI::Option* const option : subcommand->get_options())
      if (option->get_expected_min() == 0 && option->get_name() != "--stats") option->disable_flag_override();
}

std::string check_process_id(const std::string& word) {
  pid_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end && number > 0 ? "" : fmt::format("'{}' is no process id", word);
}

/// A whole number if both bounds are. The parser takes 010 for eight: it gets what was read here.
template <class T, class U>
CLI::Validator from_to(T least, U most) {
  const std::string range = fmt::format("from {} to {}", least, most);
  const auto check = [=](std::string& word) {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<U>) {
      std::int64_t number = 0;
      const char* const end = word.data() + word.size();
      const auto read = std::from_chars(word.data(), end, number);
      const bool is_in = read.ec == std::errc{} && read.ptr == end && number >= static_cast<std::int64_t>(least) &&
                         number <= static_cast<std::int64_t>(most);
      if (!is_in) return fmt::format("'{}' is not a whole number {}", word, range);
      word = std::to_string(number);
      return std::string();
    } else {
      double number = 0;
      const bool is_number = CLI::detail::lexical_cast(word, number);
      const bool is_in = is_number && number >= static_cast<double>(least) && number <= static_cast<double>(most);
      return is_in ? std::string() : fmt::format("'{}' is not a number {}", word, range);
    }
  };
  return {check, range};
}

std::string check_statistics(const std::string& word) {
  return word == "command" || word == "all" ? "" : fmt::format("'{}' is not one of its values, command and all", word);
}

void add_wrappers(CLI::App& app, function_patterns& wrappers) {
  app.add_option_function<std::string>(
         "--wrapper", [&wrappers](const std::string& pattern) { wrappers.add(pattern); },
         "This function allocates for others: its caller is the call site; * and ? stand for anything; repeatable")
      ->type_name("FUNCTION")
      ->trigger_on_parse()
      ->allow_extra_args(false);
}

std::string check_sample(const std::string& word) {
  if (word == "auto") return "";
  std::string is_no_number = word;
  const std::string complaint = from_to(1, std::uint64_t{1} << 40)(is_no_number);
  return complaint.empty() ? "" : complaint + ", nor auto";
}

/// The probe would go by the default, which is not what was meant.
void check_sample_of_environment() {
  const char* const word = std::getenv("HEAPWRIGHT_SAMPLE");
  if (word == nullptr || *word == '\0' || std::strcmp(word, "0") == 0) return;
  const std::string complaint = check_sample(word);
  if (!complaint.empty()) throw failure(exit_code::bad_input, "HEAPWRIGHT_SAMPLE: " + complaint);
}

void add_allocator_options(CLI::App& app, std::vector<std::string>& with, std::vector<std::string>& only) {
  app.add_option(
         "--with", with,
         "One more allocator: a library, or a recipe (.hpp) to build one from; NAME=LIB names its row; repeatable")
      ->type_name("LIB")
      ->allow_extra_args(false);
  app.add_option("--only", only, "Only these (glibc is always there): heapwright,jemalloc,...")
      ->type_name("NAMES")
      ->delimiter(',')
      ->transform(without_spaces_around)
      ->check(check_not_empty)
      ->allow_extra_args(false);
}

/// Of a trace. Nothing for an empty text.
std::optional<std::uint32_t> process_number(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(text));
}

constexpr const char* goals[] = {"time", "memory", "both", "latency"};

std::string check_goal(const std::string& word) {
  return std::ranges::find(goals, word) == std::end(goals)
             ? fmt::format("'{}' is none of time, memory, both and latency", word)
             : "";
}

fit_goal goal_named(const std::string& word) {
  return static_cast<fit_goal>(std::ranges::find(goals, word) - std::begin(goals));
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
                                ->check(from_to(1, 65535));
  CLI::Option* const line = app.add_option("--ready-line", options.ready_line,
                                           "The server is ready when it prints a line that this expression matches")
                                ->type_name("REGEX")
                                ->excludes(port);
  CLI::Option* const ready_timeout =
      app.add_option("--ready-timeout", options.ready_timeout_seconds, "How long it may take to be ready")
          ->type_name("SECONDS")
          ->check(from_to(0.001, 1e9))
          ->capture_default_str();
  CLI::Option* const end_timeout = app.add_option("--end-timeout", options.end_timeout_seconds,
                                                  "How long it may take to end after SIGTERM; then SIGKILL ends it")
                                       ->type_name("SECONDS")
                                       ->check(from_to(0.001, 1e9))
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

/// The parser shows a flag that may have a value as --stats{command}, and not its other values.
class help_formatter : public CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name == "--stats{command}" ? "--stats[=command|all]" : name;
  }
};

int run_subcommand(const std::vector<std::string>& words) {
  CLI::App app("heapwright " HEAPWRIGHT_VERSION
               ": run programs on heapwright's malloc, compare it with others, look into a "
               "process that runs on it, make a malloc of your own.");
  app.name("heapwright");
  app.formatter(std::make_shared<help_formatter>());
  app.footer("heapwright help SUBCOMMAND, or heapwright SUBCOMMAND --help, lists the options of one.");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);

  run_options run_with;
  CLI::App& run_app = *app.add_subcommand("run", "Run a command on heapwright's malloc");
  std::string statistics;
  run_app
      .add_flag("--stats{command}", statistics,
                "Print the heap's statistics when the command has ended. command, or no value: of its own process; "
                "all: and a "
                "table of all its processes")
      ->check(check_statistics);
  run_app.add_option("--with", run_with.library, "Another allocator to preload instead")->type_name("LIB");
  take_command(run_app, run_with.command);
  run_app.footer(
      "Exit code: the command's own; 125 if no allocator can be put under it, 126 if it cannot be executed, 127 "
      "if it is not found.");

  compare_options compare_with;
  CLI::App& compare_app = *app.add_subcommand("compare", "Run a command under several allocators, side by side");
  compare_app.add_option("--rounds", compare_with.rounds, "Measured rounds, after one warm-up")
      ->check(from_to(2, most_rounds))
      ->capture_default_str();
  compare_app.add_option("--baseline", compare_with.baseline, "The row that ratios are to")
      ->type_name("NAME")
      ->capture_default_str();
  compare_app
      .add_option("--same-within", compare_with.same_within_percent,
                  "A ratio is the same as 1 if its interval is within so many percent of it")
      ->type_name("PERCENT")
      ->check(from_to(0.1, 50))
      ->capture_default_str();
  add_allocator_options(compare_app, compare_with.with, compare_with.only);
  compare_app.add_option("--json", compare_with.json, "Write all results as JSON; - for standard output")
      ->type_name("FILE");
  compare_app.add_option("--html", compare_with.html, "Write a page with plots")->type_name("FILE");
  compare_app
      .add_option("--timeout", compare_with.timeout_seconds, "End a run that takes longer; of a server, its driver")
      ->type_name("SECONDS")
      ->check(from_to(0.001, 1e9));
  compare_app.add_flag("--ignore-output", compare_with.ignore_output, "Do not compare what the runs print");
  add_server_options(compare_app, compare_with.server);
  take_command(compare_app, compare_with.command);
  compare_app.footer(
      "Exit code: 0 if every allocator ran the command well and alike, 1 if one did not (the table says "
      "which), by the signal if interrupted (after telling what the complete rounds say), 125 for bad input, 126 if "
      "the command cannot be executed, 127 if it is not found.");

  build_options build_with;
  CLI::App& build_app = *app.add_subcommand("build", "Make a malloc from a recipe of your own");
  build_app.add_option("HEADER", build_with.header, "Defines it: inline constexpr heapwright::recipe NAME = {...};")
      ->required();
  build_app.add_option("-o,--output", build_with.output, "The library to make")->type_name("LIB")->required();
  build_app.add_option("--recipe", build_with.recipe, "Which recipe, if the header has several")->type_name("NAME");
  build_app.add_option("--compiler", build_with.compiler, "Instead of $CXX, or else c++; needs C++20")
      ->type_name("COMMAND");
  build_app.add_flag("--check", build_with.check, "Try it: conformance and stress tests");
  build_app.footer(
      "Exit code: 0 if the library was made (and tried, if asked), 1 if a test failed (nothing is written then), 125 "
      "if it "
      "could not be made.");

  live_options live_with;
  std::vector<std::string> live_words;
  CLI::App& live_app = *app.add_subcommand("live", "Watch a program's heap in the browser");
  live_app.add_option("--port", live_with.port, "Port; 0 for any")->check(from_to(0, 65535))->capture_default_str();
  live_app.add_option("--host", live_with.host, "Address to listen on; any but loopback needs a token")
      ->capture_default_str();
  live_app.add_option("--token", live_with.token,
                      "Ask viewers for this token; by default for none on loopback, and for a random one elsewhere");
  live_app
      .add_option(
          "--sample", live_with.sample,
          "Bytes between two sampled allocations, on average; 1 for all; auto (the default): as many samples as "
          "0.8 % of the program's processor time allows")
      ->type_name("BYTES")
      ->check(check_sample);
  live_app.add_option("--file", live_with.file, "A run that --save has kept, or the segment that a program has left")
      ->type_name("FILE");
  live_app
      .add_option(
          "--save", live_with.save,
          "Keep the figures of all processes, the time line and the memory map, for --file, top, diff and leaks")
      ->type_name("FILE");
  add_wrappers(live_app, live_with.wrappers);
  live_app.add_flag("--list", live_with.list, "Which processes can be watched");
  live_app.add_flag("--no-browser", live_with.no_browser, "Only print the address");
  live_app.add_flag("--exit-with-program", live_with.exit_with_program, "End when the program ends");
  live_app
      .add_option("--ready-fd", live_with.ready_fd,
                  "Write the address and this process's id to this file descriptor when the page can be seen")
      ->check(from_to(3, 1 << 20));
  live_app
      .add_option("COMMAND", live_words, "The command and its arguments, or the id of a process that has the probe")
      ->take_all();
  live_app.positionals_at_end();
  live_app.footer(
      "Exit code: the command's own where one was started, 0 otherwise; 125 for bad input, 126 if the command cannot "
      "be "
      "executed, 127 if it is not found.");

  top_options top_with;
  CLI::App& top_app = *app.add_subcommand("top", "Watch a program's heap in the terminal");
  std::string top_word;
  top_app.add_option("PID", top_word, "A process that has the probe; or a file, as --file");
  top_app
      .add_option("--process", top_with.pid,
                  "Which process of a saved run; by default the one whose live bytes had the highest peak")
      ->type_name("ID")
      ->check(check_process_id);
  top_app.add_option("--file", top_with.file, "A run that `live --save` has kept, or a segment")->type_name("FILE");
  top_app.add_option("--every", top_with.every_seconds, "Seconds between two looks")
      ->check(from_to(0.1, 3600))
      ->capture_default_str();
  add_wrappers(top_app, top_with.wrappers);
  top_app.add_flag("--once", top_with.once, "One look, as text");
  top_app.footer("Exit code: 0; 125 for bad input. q or ctrl-C ends it.");

  diff_options diff_with;
  CLI::App& diff_app = *app.add_subcommand("diff", "What has changed from one observed run to another");
  diff_app.add_option("BEFORE", diff_with.before, "A run that `live --save` has kept, or a segment")->required();
  diff_app.add_option("AFTER", diff_with.after, "Another")->required();
  diff_app.add_option("--fail-if", diff_with.fail_if, "As peak>+5%, live>+10MiB, allocations>1000; repeatable")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
  add_wrappers(diff_app, diff_with.wrappers);
  diff_app.add_option("--sites", diff_with.sites, "List at most so many call sites")
      ->check(from_to(0, 1'000'000))
      ->capture_default_str();
  diff_app.footer("Exit code: 0; 1 if a condition is so; 125 for bad input.");

  leaks_options leaks_with;
  std::vector<std::string> leaks_words;
  CLI::App& leaks_app = *app.add_subcommand("leaks", "What a program has not freed at its end, and what of it is lost");
  leaks_app
      .add_option("--suppress", leaks_with.suppressed,
                  "Not what is allocated in or below this function; * and ? stand for anything; repeatable")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  leaks_app.add_option("--suppressions", leaks_with.suppression_files, "A file of such names, one a line; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  leaks_app.add_flag("--all", leaks_with.all,
                     "Also what is still reachable, and what is indirectly lost, by call stack");
  leaks_app.add_option("--limit", leaks_with.limit, "List at most so many call stacks of a process and kind")
      ->check(from_to(0, 1'000'000))
      ->capture_default_str();
  leaks_app.add_flag("--json", leaks_with.json, "The report as JSON");
  leaks_app
      .add_option("-o,--output", leaks_with.output,
                  "Where the report goes, - for stdout; by default to stderr for a command, to stdout for a segment")
      ->type_name("FILE");
  leaks_app
      .add_option("COMMAND", leaks_words, "The command and its arguments; or a segment that `live --save` has kept")
      ->required()
      ->take_all();
  leaks_app.positionals_at_end();
  leaks_app.footer(
      "Exit code: 1 if something is definitely lost; otherwise the command's own, 0 for a segment; 125 for bad input, "
      "126 if the command cannot be executed, 127 if it is not found.");

  record_options record_with;
  CLI::App& record_app = *app.add_subcommand("record", "Write every allocation event of a program into a trace");
  record_app.add_option("-o,--output", record_with.output, "The trace")->type_name("FILE")->required();
  record_app.add_option("--seconds", record_with.seconds, "Record no longer; the command goes on")
      ->check(from_to(0.001, 1e9));
  record_app.add_option("--max-bytes", record_with.max_bytes, "Record no longer than until the trace has so many")
      ->type_name("BYTES");
  record_app.add_option("COMMAND", record_with.command, "The command and its arguments")->required()->take_all();
  record_app.positionals_at_end();
  record_app.footer(
      "Exit code: the command's own; 125 for bad input, 126 if the command cannot be executed, 127 if it is not "
      "found.");

  std::string trace_what, slice_process;
  slice_options slice_with;
  CLI::App& trace_app = *app.add_subcommand("trace", "What is in a trace; a piece of it");
  trace_app.add_option("WHAT", trace_what, "info, dump or slice")->required();
  trace_app.add_option("FILE", slice_with.trace, "The trace");
  trace_app.add_option("-o,--output", slice_with.output, "Of slice: the piece, a trace too")->type_name("FILE");
  trace_app.add_option("--from", slice_with.from_seconds, "Of slice: events from then on")
      ->type_name("SECONDS")
      ->check(from_to(0, 1e9));
  trace_app.add_option("--to", slice_with.to_seconds, "Of slice: events before then")
      ->type_name("SECONDS")
      ->check(from_to(0, 1e9));
  trace_app.add_option("--process", slice_process, "Of slice: this process alone, as info numbers them")
      ->check(from_to(0, 1e9));
  trace_app.footer("Exit code: 0; 1 if the trace is torn; 125 for bad input.");

  replay_options replay_with;
  std::string replay_process;
  CLI::App& replay_app = *app.add_subcommand("replay", "What if: a trace under other mallocs, memory and time");
  replay_app.add_option("TRACE", replay_with.trace, "The trace of `heapwright record`")->required();
  add_allocator_options(replay_app, replay_with.with, replay_with.only);
  replay_app.add_option("--process", replay_process, "The process, as `heapwright trace info` numbers them")
      ->check(from_to(0, 1e9));
  replay_app.add_option("--rounds", replay_with.rounds, "Rounds at full speed, for the time")
      ->check(from_to(1, most_rounds))
      ->capture_default_str();
  CLI::Option& only_memory =
      *replay_app.add_flag("--memory", replay_with.only_memory, "Only the memory: in turns, on the recorded clock");
  replay_app.add_flag("--time", replay_with.only_time, "Only the time: all threads at full speed")
      ->excludes(&only_memory);
  replay_app.add_flag("--touch-all", replay_with.touch_all, "Touch blocks in full, not as the program did");
  replay_app.add_option("--json", replay_with.json, "Write the figures as JSON; - for standard output")
      ->type_name("FILE");
  replay_app.add_option("--html", replay_with.html, "Write a page with plots")->type_name("FILE");
  replay_app.footer("Exit code: 0; 1 if a malloc failed; 125 for bad input.");

  fit_options fit_with;
  std::string fit_goal_word = "both";
  std::vector<std::string> fit_inputs;
  CLI::App& fit_app = *app.add_subcommand("fit", "Find the recipe that fits a program, and prove it");
  fit_app.add_option("--for", fit_goal_word, "What is to gain: time, memory, both, or latency (of a driver's figures)")
      ->type_name("GOAL")
      ->check(check_goal)
      ->capture_default_str();
  fit_app.add_option("--minutes", fit_with.minutes, "How long it may take, about")
      ->check(from_to(0.1, 10'000))
      ->capture_default_str();
  fit_app.add_option("-o,--output", fit_with.output, "The folder of recipe.hpp, libfitted.so and report.html")
      ->type_name("FOLDER")
      ->capture_default_str();
  fit_app.add_option("--json", fit_with.json, "Write the answer as JSON; - for standard output")->type_name("FILE");
  fit_app
      .add_option(
          "--input", fit_inputs,
          "Prove on this command too (on this driver, where there is one); the recipe comes from COMMAND alone; "
          "repeatable")
      ->type_name("COMMAND")
      ->allow_extra_args(false);
  add_allocator_options(fit_app, fit_with.with, fit_with.only);
  fit_app.add_option("--compiler", fit_with.compiler, "Instead of $CXX, or else c++; needs C++20")
      ->type_name("COMMAND");
  fit_app
      .add_option("--timeout", fit_with.timeout_seconds, "End a run that takes longer; by default a third of --minutes")
      ->type_name("SECONDS")
      ->check(from_to(0.001, 1e9));
  fit_app.add_flag("--ignore-output", fit_with.ignore_output, "Do not compare what the runs print");
  add_server_options(fit_app, fit_with.server);
  take_command(fit_app, fit_with.command);
  fit_app.footer(
      "Exit code: 0 for every verdict; 1 if the command fails, or a result cannot be written; by the signal if "
      "interrupted (after telling what is known), 125 for bad input, 126 if the command cannot be executed, 127 if it "
      "is "
      "not found.");

  info_options info_with;
  CLI::App& info_app =
      *app.add_subcommand("info", "Is it loaded, which version, which options, how much memory and where");
  info_app.add_option("PID", info_with.pid, "The process; without one, tells about this installation")
      ->check(check_process_id);
  info_app.add_flag("--json", info_with.json, "As JSON");
  info_app.footer("Exit code: 0 if heapwright's malloc is loaded, 1 if it is not, 2 if that cannot be found out.");

  refuse_values_of_flags(app);
  try {
    std::vector<std::string> parsed = words_for_the_parser(app, words);
    std::ranges::reverse(parsed);  // the parser takes them from the end
    app.parse(parsed);
    const auto chosen = [&]() -> int {
      if (run_app.parsed()) {
        if (!statistics.empty())
          run_with.statistics =
              statistics == "all" ? wanted_statistics::of_all_processes : wanted_statistics::of_command;
        return run(run_with);
      }
      for (std::string& wanted : compare_with.only) CLI::detail::trim(wanted);
      if (compare_app.parsed()) return compare(compare_with);
      if (build_app.parsed()) return build(build_with);
      if (top_app.parsed()) {
        if (top_word.empty() == top_with.file.empty())
          throw failure(exit_code::bad_input, "top: say one of PID and --file FILE");
        const bool is_saved = !top_with.file.empty() || !check_process_id(top_word).empty();
        if (top_with.pid != 0 && !is_saved)
          throw failure(exit_code::bad_input, "top: --process chooses from a saved run");
        if (!top_word.empty() && check_process_id(top_word).empty())
          top_with.pid = std::stoi(top_word);
        else if (top_with.file.empty())
          top_with.file = top_word;
        return top(top_with);
      }
      if (diff_app.parsed()) return diff(diff_with);
      if (leaks_app.parsed()) {
        const bool is_command = std::ranges::find(words, "--") != words.end();
        what_has_leaked(leaks_words, is_command, leaks_with);
        return leaks(leaks_with);
      }
      if (record_app.parsed()) return record(record_with);
      for (std::string& wanted : replay_with.only) CLI::detail::trim(wanted);
      if (replay_app.parsed()) {
        replay_with.process = process_number(replay_process);
        return replay(replay_with);
      }
      for (std::string& wanted : fit_with.only) CLI::detail::trim(wanted);
      if (fit_app.parsed()) {
        fit_with.goal = goal_named(fit_goal_word);
        for (const std::string& text : fit_inputs)
          fit_with.inputs.push_back(fit_with.server.driver.empty() ? CLI::detail::split_up(text)
                                                                   : std::vector<std::string>{text});
        return fit(fit_with);
      }
      if (trace_app.parsed()) {
        if ((trace_what != "info" && trace_what != "dump" && trace_what != "slice") || slice_with.trace.empty())
          throw failure(exit_code::bad_input, "trace: say what, info, dump or slice, and behind it the trace");
        if (trace_what == "slice") {
          if (slice_with.output.empty()) throw failure(exit_code::bad_input, "trace slice: -o FILE is missing");
          slice_with.process = process_number(slice_process);
          return trace_slice(slice_with);
        }
        if (trace_app.count_all() > 3)
          throw failure(exit_code::bad_input, fmt::format("trace {} takes a trace and no options", trace_what));
        return trace_what == "info" ? trace_info(slice_with.trace) : trace_dump(slice_with.trace);
      }
      if (live_app.parsed()) {
        if (live_with.list && live_app.count_all() > 2)
          throw failure(exit_code::bad_input, "live: --list takes no other options");
        what_to_watch(live_words, live_with);
        if (!live_with.command.empty() && live_with.sample.empty()) check_sample_of_environment();
        return live(live_with);
      }
      return info(info_with);
    };
    const int code = chosen();
    finish_answers();
    return code;
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    const int code = app.exit(help_or_version, text, text);
    answer_text(text.str());
    finish_answers();
    return code;
  } catch (const CLI::ParseError& error) {
    throw failure(info_app.parsed() ? exit_code::unreadable : exit_code::bad_input, complaint_about(app, error));
  } catch (const failure& trouble) {
    throw failure(info_app.parsed() ? exit_code::unreadable : trouble.code(), trouble.what());
  } catch (const std::exception& trouble) {
    throw failure(info_app.parsed() ? exit_code::unreadable : exit_code::bad_input, trouble.what());
  }
}

}  // namespace

// What throws outside of run_subcommand's `try` is a mistake in its options.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  occupy_standard_descriptors();
  try {
    return run_subcommand({argv + 1, argv + argc});
  } catch (const failure& trouble) {
    tell("heapwright: {}\n", trouble.what());
    return trouble.code();
  } catch (const interrupted& by) {
    return end_by_signal(by.signal);
  }
}
