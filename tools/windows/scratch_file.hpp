// What a program that is started reads and writes.
#pragma once

#include <string>

#include "command.hpp"

namespace heapwright::tool {

/// A file that goes when it is closed. Inherited by what is started. Throws `failure`.
[[nodiscard]] handle scratch_file();

/// All that has been written to it.
[[nodiscard]] std::string content_of(HANDLE file);

/// Empty. Inherited by what is started.
[[nodiscard]] handle no_input();

/// The processes that are put into it end when it is closed, as it is when this process ends.
[[nodiscard]] handle ending_job();

}  // namespace heapwright::tool
