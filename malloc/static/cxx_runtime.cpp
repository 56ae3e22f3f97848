// In a statically linked program the weak symbols are all there is. The symbols that the compiler puts in for the `catch` are made
// weak as well: where there is no runtime there are no exceptions, and nobody looks at them.
#include "../override/cxx_runtime.hpp"

__asm__(".weak __gxx_personality_v0\n\t.weak __cxa_begin_catch\n\t.weak __cxa_end_catch\n\t.weak _Unwind_Resume");

namespace heapwright::process {

void* cxx_runtime_function(const char*) noexcept { return nullptr; }

void* new_caught(std::size_t size, std::size_t alignment) noexcept {
  try {
    return ::operator new(size, std::align_val_t{alignment});
  } catch (...) {
    return nullptr;
  }
}

}  // namespace heapwright::process
