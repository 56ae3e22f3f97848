// An older kernel, without MADV_GUARD_INSTALL: guard pages are mappings of their own. gdb's
// generate-core-file writes zeros behind a page that it cannot read in the midst of a mapping.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

int madvise(void* p, size_t bytes, int advice) {
  if (advice == 102 || advice == 103) return errno = EINVAL, -1;
  return (int)syscall(SYS_madvise, p, bytes, advice);
}
