// What the user gives a command on standard input.
#pragma once

#include <optional>

#include "scratch_file.hpp"

namespace heapwright::tool {

/// All of it, so that each run can read it again. Nothing for a terminal or a device. May wait for
/// ever, so call it before signals are held back.
std::optional<scratch_file> given_input();

}  // namespace heapwright::tool
