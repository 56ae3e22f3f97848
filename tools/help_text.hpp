// What `heapwright --help` and `heapwright SUBCOMMAND --help` print: no wider than the terminal,
// and what an option takes in the words of this project.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace heapwright::tool {

/// "heapwright diff [OPTIONS] BEFORE AFTER", of a subcommand.
std::string usage_of(const CLI::App& app);

class help_text : public CLI::FormatterBase {
 public:
  /// `columns`: those of the terminal; 0: there is none.
  explicit help_text(unsigned columns);

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::size_t width_;
};

}  // namespace heapwright::tool
