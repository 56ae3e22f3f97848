// A file that a subcommand will write when its work is done.
#pragma once

#include <string>

namespace heapwright::tool {

/// Throws failure if the path cannot be written to now: to be asked before long work, whose result would be lost. Empty and
/// "-" are no files.
void check_writable(const std::string& path);

}  // namespace heapwright::tool
