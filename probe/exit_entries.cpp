// _exit and _Exit end a process without its destructors, and are how shells end: the segment says
// that it exited, not that it was killed.
#include <dlfcn.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "../abi/export.hpp"
#include "observer.hpp"

namespace {

// Found when the probe is loaded: a signal handler that calls _exit may have interrupted the
// loader.
void (*next_exit)(int) = nullptr;

[[gnu::constructor]] void find_next_exit() noexcept {
  next_exit = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_NEXT, "_exit"));
}

}  // namespace

extern "C" {

HEAPWRIGHT_EXPORT void _exit(int status) {
  heapwright::probe::note_exit();
  // libheapwright's writes statistics.
  if (next_exit != nullptr) next_exit(status);
  for (;;) ::syscall(SYS_exit_group, status);
}

HEAPWRIGHT_EXPORT void _Exit(int status) noexcept { ::_exit(status); }

}  // extern "C"
