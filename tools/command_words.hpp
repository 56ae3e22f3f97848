// What is wrong with the words of a command line, in a sentence that says what to do.
//
// The parser (CLI11) has words of its own for it, and reads some words in ways that nobody means:
// it takes the word behind `--with=` for the value. So the words are looked at before the parser
// sees them: each option is known, stands once, and has a value that is not empty; there are as
// many other words as the subcommand takes. The parser then checks values and sets variables.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace heapwright::tool {

/// The words for the parser: an option and its value are two of them, `help live` is
/// `live --help`, and no word at all asks for the overview. Throws failure if something is wrong
/// with them. A subcommand with a positional COMMAND takes all words from the first that is no
/// option, as they are. `app`: all options and subcommands are defined.
std::vector<std::string> words_for_the_parser(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace heapwright::tool
