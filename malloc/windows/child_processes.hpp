// Processes that this one starts get heapwright.dll too, where `heapwright run` wishes so. They are
// started through our entries for CreateProcess, which let the new process load the library before
// it runs, as `run` does.
//
// Nothing of it may fail the program: a process that cannot load the library runs without it.
#pragma once

#include "windows_headers.hpp"

namespace heapwright::process {

/// The variable of the environment that says so, "1", and that the processes inherit.
inline constexpr const char* children_variable = "HEAPWRIGHT_CHILDREN";

/// The variable that says that HEAPWRIGHT_STATS is for this process, and not inherited.
inline constexpr const char* stats_once_variable = "HEAPWRIGHT_STATS_ONCE";

/// Once, before any import is redirected. `self`: heapwright.dll.
void follow_children(HMODULE self) noexcept;

/// Our entry for what starts a process, if that is what is at the address, and children are
/// followed; null otherwise.
[[nodiscard]] void* entry_for_start(const void* address) noexcept;

/// Whether the module is one of those that start processes for others: its own calls stay.
[[nodiscard]] bool starts_for_others(HMODULE module) noexcept;

}  // namespace heapwright::process
