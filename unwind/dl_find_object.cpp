// Apart from code_object.cpp, as a static program has no dlsym to call.
#include <dlfcn.h>

#include "code_object.hpp"

namespace heapwright::unwind {

void look_up_dl_find_object() noexcept {
  find_object = reinterpret_cast<find_object_function*>(::dlsym(RTLD_DEFAULT, "_dl_find_object"));
}

}  // namespace heapwright::unwind
