// What `heapwright --help` and `heapwright SUBCOMMAND --help` print: no wider than the terminal,
// and what an option takes in the words of this project.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace heapwright::tool {

/// "heapwright diff [OPTIONS] BEFORE AFTER", of a subcommand.
std::string usage_of(const CLI::App& app);

/// "-o, --output FILE".
std::string shown_name(const CLI::Option& option);

/// What it is, its range, its default, what it needs.
std::string shown_text(const CLI::Option& option);

/// It has no value, or may have none.
bool is_flag(const CLI::Option& option);

/// "FILE", "N".
std::string kind_of_value(const CLI::Option& option);

std::vector<const CLI::Option*> options_in_group(const CLI::App& app, const std::string& group);
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);

class help_text : public CLI::FormatterBase {
 public:
  /// `columns`: those of the terminal; 0: there is none.
  explicit help_text(unsigned columns);

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::size_t width_;
};

}  // namespace heapwright::tool
