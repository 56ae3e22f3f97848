// The command line: which subcommand; everything else is its own.
#include <algorithm>
#include <exception>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "awaited_signals.hpp"
#include "command_words.hpp"
#include "failure.hpp"
#include "help_text.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"

namespace {

using namespace heapwright::tool;

/// What the parser says of a value.
std::string complaint_about(const CLI::App& app, const CLI::ParseError& error) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? error.what() : fmt::format("{}: {}", subcommands.front()->get_name(), error.what());
}

/// `--list=yes` is refused for flags that have no values.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::App* const subcommand : app.get_subcommands(nullptr))
    for (CLI::Option* const option : subcommand->get_options())
      if (option->get_expected_min() == 0 && option->get_name() != "--stats") option->disable_flag_override();
}

int run_subcommand(const std::vector<std::string>& words) {
  CLI::App app;
  app.formatter(std::make_shared<help_text>(columns_of(STDOUT_FILENO)));
  const std::vector<subcommand> all = add_subcommands(app, words);
  refuse_values_of_flags(app);
  const auto code_of = [&](int otherwise) { return app.got_subcommand("info") ? exit_code::unreadable : otherwise; };
  try {
    std::vector<std::string> parsed = words_for_the_parser(app, words);
    std::ranges::reverse(parsed);  // the parser takes them from the end
    app.parse(parsed);
    const int code = std::ranges::find_if(all, [](const subcommand& one) { return one.app->parsed(); })->carry_out();
    finish_answers();
    return code;
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    const int code = app.exit(help_or_version, text, text);
    answer_text(text.str());
    finish_answers();
    return code;
  } catch (const CLI::ParseError& error) {
    throw failure(code_of(exit_code::bad_input), complaint_about(app, error));
  } catch (const failure& trouble) {
    throw failure(code_of(trouble.code()), trouble.what());
  } catch (const std::exception& trouble) {
    throw failure(code_of(exit_code::bad_input), trouble.what());
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
