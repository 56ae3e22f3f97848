// Man pages in the macros of man(7), made from what --help is made from.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace heapwright::tool {

/// heapwright(1): the subcommands, and what they have in common.
std::string manual_page(const CLI::App& app);

/// heapwright-SUBCOMMAND(1).
std::string manual_page_of(const CLI::App& subcommand);

}  // namespace heapwright::tool
