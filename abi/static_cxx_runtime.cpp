// In a statically linked program only C++ code refers to operator new, and so to this file: the C++
// runtime is linked in with it.
#include "cxx_runtime.hpp"
#include "default_operators.hpp"

// By the name that it has in libstdc++ and libc++ alike: `throw` would put a copy of the
// exception's type into the archive.
extern "C" [[noreturn]] void _ZSt17__throw_bad_allocv();

namespace heapwright::process {

constinit default_operators defaults{};

std::new_handler current_new_handler() noexcept { return std::get_new_handler(); }

void throw_bad_alloc() { _ZSt17__throw_bad_allocv(); }

void* new_caught(std::size_t size, std::size_t alignment) noexcept {
  try {
    return ::operator new(size, std::align_val_t{alignment});
  } catch (...) {
    return nullptr;
  }
}

}  // namespace heapwright::process
