// The two functions of the C++ runtime that operator new needs when memory has run out, found without linking to it.
#pragma once

#include <new>

namespace heapwright::process {

/// The runtime's function of this mangled name; null when the process has no C++ runtime. One definition for the shared
/// library, which finds runtimes loaded after it as well, and one for static linking.
[[nodiscard]] void* cxx_runtime_function(const char* mangled) noexcept;

/// Null when no handler is set.
[[nodiscard]] std::new_handler current_new_handler() noexcept;

/// Throws std::bad_alloc; ends the process with a message where there is no runtime to throw with.
[[noreturn]] void throw_bad_alloc();

}  // namespace heapwright::process
