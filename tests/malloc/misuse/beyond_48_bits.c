// Addresses that no heap can have: a tagged pointer, an address of the kernel. Like each pointer
// that is not the library's, they go to libc's malloc, which this program stands in for.
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../support/opaque.h"
#include "../support/require.h"

// Volatile, because the headers promise the compiler that free calls nothing of this file.
static void* volatile freed;
static void* volatile reallocated;

void __libc_free(void* p);
void __libc_free(void* p) { freed = p; }

void* __libc_realloc(void* p, size_t size);
void* __libc_realloc(void* p, size_t size) {
  reallocated = p;
  return size == 0 ? p : NULL;
}

static void expect_passed_on(uintptr_t address) {
  void* const p = opaque((void*)address);
  freed = NULL;
  reallocated = NULL;
  REQUIRE(malloc_usable_size(p) == 0);
  free(p);
  REQUIRE(freed == p);
  REQUIRE(opaque(realloc(p, opaque_size(100))) == NULL);
  REQUIRE(reallocated == p);
}

int main(void) {
  static const size_t sizes[] = {40, 1000000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    char* const block = (char*)opaque(malloc(opaque_size(sizes[i])));
    memset(block, 1, sizes[i]);
    for (unsigned bit = 48; bit < 64; ++bit) expect_passed_on((uintptr_t)block | (uintptr_t)1 << bit);
    REQUIRE(malloc_usable_size(block) >= sizes[i]);
    free(block);
    REQUIRE(freed != block);
  }
  expect_passed_on((uintptr_t)1 << 48);
  expect_passed_on(0xffff800000000000);
  expect_passed_on(UINTPTR_MAX - 15);
  return 0;
}
