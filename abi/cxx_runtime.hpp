// What operator new needs of the C++ runtime when memory has run out. Defined once for the shared
// library, which must not need a runtime and looks for one then, also for one that was loaded after
// it; and once for static linking, which links it.
#pragma once

#include <cstddef>
#include <new>

namespace heapwright::process {

/// The runtime's function of this mangled name; null when the process has no C++ runtime. In the
/// shared library.
[[nodiscard]] void* cxx_runtime_function(const char* mangled) noexcept;

/// Whether the process was started with one. In the shared library.
[[nodiscard]] bool is_started_with_cxx_runtime() noexcept;

/// The throwing form of operator new with its exceptions caught: null instead.
[[nodiscard]] void* new_caught(std::size_t size, std::size_t alignment) noexcept;

/// Null when no handler is set.
[[nodiscard]] std::new_handler current_new_handler() noexcept;

/// Throws std::bad_alloc; ends the process with a message where there is no runtime to throw with.
[[noreturn]] void throw_bad_alloc();

}  // namespace heapwright::process
