// Names that threads give themselves. The calls are passed on, and the next sample looks at the
// name anew: otherwise one would be noticed with one of the 64 samples behind it.
#include <cerrno>
#include <cstdarg>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../abi/export.hpp"
#include "sampler.hpp"

extern "C" {

HEAPWRIGHT_EXPORT int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  using setname_function = int(pthread_t, const char*);
  auto* const real = reinterpret_cast<setname_function*>(::dlsym(RTLD_NEXT, "pthread_setname_np"));
  if (real == nullptr) return ENOSYS;  // before glibc 2.34 it is libpthread's, which is not loaded
  const int result = real(thread, name);
  heapwright::probe::sampler::look_at_name();
  return result;
}

/// As libc's, which has no more to do than the system call.
HEAPWRIGHT_EXPORT int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(list, unsigned long);
  va_end(list);
  const long result = ::syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
  if (option == PR_SET_NAME) heapwright::probe::sampler::look_at_name();
  return static_cast<int>(result);
}

}  // extern "C"
