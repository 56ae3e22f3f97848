// glibc's malloc, which takes 64 MiB more once the clock has gone on by half a second. It defines
// all that a malloc has, so that it is one for `heapwright`.
#include <stddef.h>
#include <string.h>
#include <time.h>

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

static void hoard(void) {
  static long long begun = 0;
  static int has_hoarded = 0;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long long ns = now.tv_sec * 1000000000LL + now.tv_nsec;
  if (begun == 0) begun = ns;
  if (has_hoarded || ns - begun < 500000000LL) return;
  has_hoarded = 1;
  memset(__libc_malloc(64 << 20), 1, 64 << 20);
}

__attribute__((visibility("default"))) void* malloc(size_t size) {
  hoard();
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
__attribute__((visibility("default"))) void* realloc(void* p, size_t size) { return __libc_realloc(p, size); }
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t size) {
  return __libc_memalign(alignment, size);
}
__attribute__((visibility("default"))) void free(void* p) { __libc_free(p); }
