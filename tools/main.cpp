// The command line: which subcommand, with which options; everything else is theirs.
#include <cstdio>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "failure.hpp"

namespace {

using namespace heapwright::tool;

/// The command to run is the first word that is no option of ours, and all that follows.
void take_command(CLI::App& app, std::vector<std::string>& command) {
  app.add_option("COMMAND", command, "The command and its arguments")->required()->take_all();
  app.positionals_at_end();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("heapwright " HEAPWRIGHT_VERSION
               ": run programs on heapwright's malloc, compare it with others, look into a "
               "process that runs on it, make a malloc of your own.");
  app.set_version_flag("--version", "heapwright " HEAPWRIGHT_VERSION);
  app.require_subcommand(1);

  run_options run_with;
  CLI::App& run_app = *app.add_subcommand("run", "Run a command on heapwright's malloc");
  run_app.add_flag("--stats", run_with.statistics, "Print the heap's statistics when the command ends");
  run_app.add_option("--with", run_with.library, "Another allocator to preload instead")->type_name("LIB");
  take_command(run_app, run_with.command);
  run_app.footer(
      "Exit code: the command's own; 125 if no allocator can be put under it, 126 if it cannot be executed, 127 "
      "if it is not found.");

  compare_options compare_with;
  CLI::App& compare_app = *app.add_subcommand("compare", "Run a command under several allocators, side by side");
  compare_app.add_option("--rounds", compare_with.rounds, "Measured rounds, after one warm-up")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  compare_app.add_option("--with", compare_with.with, "One more allocator: a library, or NAME=library; repeatable")
      ->type_name("LIB")
      ->allow_extra_args(false);
  compare_app.add_option("--only", compare_with.only, "Only these (glibc is always there): heapwright,jemalloc,...")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  compare_app.add_option("--json", compare_with.json, "Write all results as JSON; - for standard output")
      ->type_name("FILE");
  compare_app.add_option("--html", compare_with.html, "Write a page with plots")->type_name("FILE");
  compare_app.add_option("--timeout", compare_with.timeout_seconds, "End a run that takes longer")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  compare_app.add_flag("--ignore-output", compare_with.ignore_output, "Do not compare what the runs print");
  take_command(compare_app, compare_with.command);
  compare_app.footer(
      "Exit code: 0 if every allocator ran the command well and alike, 1 if one did not (the table says "
      "which), 125 for bad input, 126 if the command cannot be executed, 127 if it is not found.");

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
      "Exit code: 0 if the library was made (and tried, if asked), 1 if it was made and a test failed, 125 if it could "
      "not be made.");

  info_options info_with;
  CLI::App& info_app =
      *app.add_subcommand("info", "Is it loaded, which version, which options, how much memory and where");
  info_app.add_option("PID", info_with.pid, "The process; without one, tells about this installation")
      ->check(CLI::PositiveNumber);
  info_app.add_flag("--json", info_with.json, "As JSON");
  info_app.footer("Exit code: 0 if heapwright's malloc is loaded, 1 if it is not, 2 if that cannot be found out.");

  try {
    app.parse(argc, argv);
    if (run_app.parsed()) run(run_with);
    if (compare_app.parsed()) return compare(compare_with);
    if (build_app.parsed()) return build(build_with);
    return info(info_with);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return info_app.parsed() ? exit_code::unreadable : exit_code::bad_input;
  } catch (const std::filesystem::filesystem_error& trouble) {
    fmt::print(stderr, "heapwright: {}\n", trouble.what());
    return info_app.parsed() ? exit_code::unreadable : exit_code::bad_input;
  } catch (const failure& trouble) {
    fmt::print(stderr, "heapwright: {}\n", trouble.what());
    return info_app.parsed() ? exit_code::unreadable : trouble.code();
  }
}
