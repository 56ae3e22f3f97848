// RTLD_DEEPBIND lets a plugin find libc's malloc and free before ours, while what libc allocates
// for it (strdup, getline) comes from ours: its free would be handed a pointer it cannot know, and
// abort. So the flag is taken away.
//
// The call to the real dlopen must be a jump: dlopen searches the RUNPATH of the library that its
// return address lies in. The compiler makes it one when it optimises; tests/malloc checks the
// effect.
#include <dlfcn.h>

#include "export.hpp"

extern "C" HEAPWRIGHT_EXPORT void* dlopen(const char* file, int mode) noexcept {
  using dlopen_function = void*(const char*, int);
  auto* const real = reinterpret_cast<dlopen_function*>(::dlsym(RTLD_NEXT, "dlopen"));
  if (real == nullptr) return nullptr;  // a program without libdl, on an old glibc
  return real(file, mode & ~RTLD_DEEPBIND);
}
