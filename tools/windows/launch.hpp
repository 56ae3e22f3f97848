// Starts a program, with a library as its first.
//
// The program's process is made without letting it run. A thread of its own then loads the library,
// and only after that the program runs. The loader has loaded by then what the program imports. So
// blocks that those libraries have allocated as they were loaded are the C library's, and go back
// there.
#pragma once

#include <string>

#include "command.hpp"

namespace heapwright::tool {

/// heapwright.dll, beside this program. Throws `failure` if it is not there.
[[nodiscard]] std::wstring path_of_dll();

/// A process that has been started. It goes on when this is destroyed.
struct launched {
  handle process;
  handle thread;
};

/// Standard handles of a program; null: those of this one.
struct standard_handles {
  HANDLE input = nullptr, output = nullptr, error = nullptr;
};

/// `dll` empty: no library. In `job`, if that is not null: the process, and those that it starts,
/// belong to it. Throws `failure`; no process is left then.
[[nodiscard]] launched launch(const words& command, const std::wstring& dll, standard_handles handles = {},
                              HANDLE job = nullptr);

}  // namespace heapwright::tool
