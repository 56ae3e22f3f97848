// A C program may load a C++ library later, and privately (RTLD_LOCAL), as interpreters do with extension modules; then the weak
// symbols were bound to nothing. A runtime that is loaded can still be asked for by its name.
#include <initializer_list>

#include <dlfcn.h>

#include "../override/cxx_runtime.hpp"

namespace heapwright::process {

void* cxx_runtime_function(const char* mangled) noexcept {
  for (const char* runtime : {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"}) {
    if (void* const library = ::dlopen(runtime, RTLD_LAZY | RTLD_NOLOAD)) {
      void* const function = ::dlsym(library, mangled);
      ::dlclose(library);  // the count of its users only: it stays loaded
      if (function != nullptr) return function;
    }
  }
  return nullptr;
}

}  // namespace heapwright::process
