// Apart from code_object.cpp, as a static program has no dlsym to call.
#include <dlfcn.h>

#include "../abi/written_at_start.hpp"
#include "code_object.hpp"

namespace heapwright::unwind {

void look_up_dl_find_object() noexcept {
  auto* const found = reinterpret_cast<find_object_function*>(::dlsym(RTLD_DEFAULT, "_dl_find_object"));
  if (found == nullptr) return;
  if (const process::opened is_open(find_object); is_open) find_object = found;
}

}  // namespace heapwright::unwind
