// The subcommands as the command line has them: their options, and what becomes of these.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace heapwright::tool {

struct subcommand {
  CLI::App* app;                   ///< which of them, if the parser has found its name
  std::function<int()> carry_out;  ///< once its words are parsed; returns the exit code
};

/// Defines `app`, its options and all subcommands. It must live as long as what is returned.
/// `words`: those of the command line; behind a `--` among them there is a command.
std::vector<subcommand> add_subcommands(CLI::App& app, const std::vector<std::string>& words);

}  // namespace heapwright::tool
