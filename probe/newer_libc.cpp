#include "newer_libc.hpp"

#include <dlfcn.h>

#include "../unwind/code_object.hpp"

namespace heapwright::probe {
namespace {

constexpr char not_known = 0;

}  // namespace

constinit const char* single_threaded_flag = &not_known;

void look_up_newer_libc() noexcept {
  unwind::look_up_dl_find_object();
  if (void* const flag = ::dlsym(RTLD_DEFAULT, "__libc_single_threaded"))
    single_threaded_flag = static_cast<const char*>(flag);
}

}  // namespace heapwright::probe
