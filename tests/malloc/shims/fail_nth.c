// Preloaded before the malloc under test: makes some of its calls for memory fail, as they do when
// address space, memory or the number of mappings has run out.
//
//   FAIL_FROM=n        the n-th call of the process (from 1) is the first that fails; without it
//                      none does
//   FAIL_COUNT=m       so many fail; default 1, 0 is all that follow
//   FAIL_REPORT=file   the number of calls is written there at exit
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_ulong calls;

// The first calls come before libc has an environment; the kernel has it from the start.
static unsigned long setting(const char* name, unsigned long otherwise) {
  static char environment[1 << 17];
  static size_t length;
  if (length == 0) {
    const int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; (n = read(fd, environment + length, sizeof environment - 1 - length)) > 0;) length += (size_t)n;
    close(fd);
  }
  const size_t name_length = strlen(name);
  for (const char* e = environment; e < environment + length; e += strlen(e) + 1) {
    if (strncmp(e, name, name_length) == 0 && e[name_length] == '=') return strtoul(e + name_length + 1, NULL, 10);
  }
  return otherwise;
}

static int must_fail(int error) {
  const unsigned long call = atomic_fetch_add(&calls, 1) + 1;
  const unsigned long from = setting("FAIL_FROM", 0);
  const unsigned long count = setting("FAIL_COUNT", 1);
  if (from == 0 || call < from || (count != 0 && call >= from + count)) return 0;
  errno = error;
  return 1;
}

void* mmap(void* p, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (must_fail(ENOMEM)) return MAP_FAILED;
  return (void*)syscall(SYS_mmap, p, bytes, protection, flags, fd, offset);
}

int munmap(void* p, size_t bytes) { return must_fail(ENOMEM) ? -1 : (int)syscall(SYS_munmap, p, bytes); }

int madvise(void* p, size_t bytes, int advice) {
  return must_fail(ENOMEM) ? -1 : (int)syscall(SYS_madvise, p, bytes, advice);
}

// Linux before 6.17 refuses to move a range of several mappings, and has unmapped a fixed target by
// then.
void* mremap(void* p, size_t from, size_t to, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void* const target = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : NULL;
  va_end(rest);
  if (must_fail(EFAULT)) {
    if (target != NULL) syscall(SYS_munmap, target, to);
    errno = EFAULT;
    return MAP_FAILED;
  }
  return (void*)syscall(SYS_mremap, p, from, to, flags, target);
}

__attribute__((destructor)) static void report(void) {
  const char* const file = getenv("FAIL_REPORT");
  if (file == NULL) return;
  const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  dprintf(fd, "%lu\n", atomic_load(&calls));
  close(fd);
}
