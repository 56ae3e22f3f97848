// _exit and _Exit end a process without its destructors, and are how shells end. Their statistics
// are wanted too (report_exit).
//
// Where none are wanted this only ends the process. May be called by signal handlers, and by the
// child of a vfork.
#include <cstdlib>

#include <unistd.h>

#include <sys/syscall.h>

#include "../../abi/export.hpp"
#include "../statistics.hpp"

extern "C" {

HEAPWRIGHT_EXPORT void _exit(int status) {
  heapwright::process::report_exit();
  for (;;) ::syscall(SYS_exit_group, status);
}

HEAPWRIGHT_EXPORT void _Exit(int status) noexcept { ::_exit(status); }

}  // extern "C"
