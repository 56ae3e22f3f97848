// From the name that the linker knows to the one that the programmer wrote, without parameters:
// what a flame graph has room for.
#pragma once

#include <string>

namespace heapwright::tool {

/// C++ and Rust (both of its schemes; without the hash at the end). What is not mangled stays, less
/// what compilers and linkers append to the names of parts and copies of functions (`.constprop.0`,
/// `.cold`, `@@VERSION`).
[[nodiscard]] std::string demangled(const std::string& name);

}  // namespace heapwright::tool
