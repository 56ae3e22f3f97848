// What a subcommand writes when its work is done: files, and standard output, which is called "-".
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heapwright::tool {

/// Throws failure if the path cannot be written to now: to be asked before long work, whose result
/// would be lost. Empty and "-" are no files.
void check_writable(const std::string& path);

/// Writes texts to paths, each whatever becomes of the others. Then throws failure with this code
/// if one was lost, and says which and why.
void write_outputs(const std::vector<std::pair<std::string, std::string>>& texts_by_path, int code_if_lost);

}  // namespace heapwright::tool
