// Preloaded before the malloc under test: a system whose pages have PAGE_SIZE bytes (a power of two
// of 4096 and up, set when it is compiled: the first calls come before there is an environment). It
// says so wherever a program may ask, hands out memory aligned to it, and ends the process with a
// message when a call is not in whole pages, where such a system would refuse it or round it over
// memory in use.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t page_size(void) { return PAGE_SIZE; }

unsigned long getauxval(unsigned long type) {
  static unsigned long (*real)(unsigned long);
  if (type == AT_PAGESZ) return page_size();
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "getauxval");
  return real(type);
}

long sysconf(int name) {
  static long (*real)(int);
  if (name == _SC_PAGESIZE) return (long)page_size();
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "sysconf");
  return real(name);
}

int getpagesize(void) { return (int)page_size(); }

static void must_be_whole(const char* call, const void* p, size_t bytes) {
  if ((uintptr_t)p % page_size() == 0 && bytes % page_size() == 0 && bytes != 0) return;
  // The malloc is in the middle of something: nothing here may call it.
  char message[200];
  const int length =
      snprintf(message, sizeof message, "%s(%p, %zu): not whole pages of %zu bytes\n", call, p, bytes, page_size());
  if (length > 0 && write(2, message, (size_t)length) < 0) _exit(2);
  _exit(1);
}

static void* map(size_t bytes, int protection, int flags, int fd, off_t offset) {
  return (void*)syscall(SYS_mmap, NULL, bytes, protection, flags, fd, offset);
}

void* mmap(void* p, size_t bytes, int protection, int flags, int fd, off_t offset) {
  must_be_whole("mmap", p, bytes);
  if (fd >= 0 || p != NULL) return (void*)syscall(SYS_mmap, p, bytes, protection, flags, fd, offset);
  char* const raw = map(bytes + page_size(), protection, flags, fd, offset);
  if ((void*)raw == MAP_FAILED) return MAP_FAILED;
  char* const aligned = (char*)(((uintptr_t)raw + page_size() - 1) & ~(uintptr_t)(page_size() - 1));
  if (aligned > raw) syscall(SYS_munmap, raw, (size_t)(aligned - raw));
  syscall(SYS_munmap, aligned + bytes, page_size() - (size_t)(aligned - raw));
  return aligned;
}

int munmap(void* p, size_t bytes) {
  must_be_whole("munmap", p, bytes);
  return (int)syscall(SYS_munmap, p, bytes);
}

int madvise(void* p, size_t bytes, int advice) {
  must_be_whole("madvise", p, bytes);
  return (int)syscall(SYS_madvise, p, bytes, advice);
}

void* mremap(void* p, size_t from, size_t to, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void* target = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : NULL;
  va_end(rest);
  must_be_whole("mremap from", p, from);
  must_be_whole("mremap to", target, to);
  if (to > from && (flags & MREMAP_MAYMOVE) != 0 && target == NULL) {
    target = mmap(NULL, to, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (target == MAP_FAILED) return MAP_FAILED;
    flags |= MREMAP_FIXED;
  }
  return (void*)syscall(SYS_mremap, p, from, to, flags, target);
}
