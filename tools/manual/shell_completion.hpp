// Completions for bash, zsh and fish, made from what --help is made from: subcommands, options,
// what their values are, and the words of a command that a subcommand runs.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace heapwright::tool {

std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace heapwright::tool
