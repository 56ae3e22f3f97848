// Code that is unmapped may be followed by other code at the same addresses.
#include <dlfcn.h>

#include "../abi/export.hpp"
#include "interpreter.hpp"
#include "unwind.hpp"

extern "C" HEAPWRIGHT_EXPORT int dlclose(void* library) noexcept {
  using dlclose_function = int(void*);
  auto* const real = reinterpret_cast<dlclose_function*>(::dlsym(RTLD_NEXT, "dlclose"));
  heapwright::probe::the_interpreter.forget();  // whose functions may be gone afterwards
  const int result = real(library);
  heapwright::probe::forget_rules();
  return result;
}
