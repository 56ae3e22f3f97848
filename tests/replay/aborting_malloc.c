// A malloc that ends the process at a block of 12,345 bytes.
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void* __libc_malloc(size_t);
void __libc_free(void*);

__attribute__((visibility("default"))) void* malloc(size_t size) {
  if (size == 12345) {
    (void)!write(2, "no such block\n", 14);
    abort();
  }
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void free(void* p) { __libc_free(p); }
