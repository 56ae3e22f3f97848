// In a statically linked program the weak symbols are all there is.
#include "../override/cxx_runtime.hpp"

namespace heapwright::process {

void* cxx_runtime_function(const char*) noexcept { return nullptr; }

}  // namespace heapwright::process
