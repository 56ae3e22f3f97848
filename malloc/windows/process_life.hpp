// The malloc from the beginning of a process, or of its own in one, to the end.
//
// States of the process: its modules are redirected; or another malloc of ours was here before, and
// this one does nothing.
#pragma once

#include "windows_headers.hpp"

namespace heapwright::process {

/// `module`: what this malloc lies in, heapwright.dll or the program itself. The caller holds the
/// loader's lock. False: the process has no room for a thread's word; nothing is redirected.
[[nodiscard]] bool begin_process(HMODULE module) noexcept;

/// The calling thread ends.
void end_thread() noexcept;

/// The process ends: tells what is to be told then, once. What is allocated and freed behind it is
/// served all the same.
void end_process() noexcept;

}  // namespace heapwright::process
