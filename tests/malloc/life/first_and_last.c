// malloc before main and after it: from the program's pre-initialisers and earliest constructors,
// and at exit from handlers and destructors, the last of them with memory that was allocated first.
#include <stdlib.h>

#include "../support/opaque.h"
#include "../support/pattern.h"
#include "../support/require.h"

static void *from_preinit, *from_constructor, *from_main;

static void* make(size_t size, uint64_t seed) {
  void* const p = opaque(malloc(opaque_size(size)));
  REQUIRE(p != NULL);
  pattern_fill(p, size, seed, 0);
  return p;
}

static void end(void* p, size_t size, uint64_t seed) {
  REQUIRE(pattern_holds(p, size, seed));
  free(p);
}

static void preinit(void) { from_preinit = make(5000, 1); }
#ifndef __aarch64__
__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(void) = preinit;
#endif

__attribute__((constructor(101))) static void construct(void) {
  if (from_preinit == NULL) preinit();
  from_constructor = make(100000, 2);
  for (size_t i = 0; i < 1000; ++i) free(make(i, i));
}

static void at_exit(void) {
  end(from_main, 300, 3);
  from_main = make(3000000, 4);
}

__attribute__((destructor(101))) static void destruct(void) {
  end(from_main, 3000000, 4);
  end(from_constructor, 100000, 2);
  end(from_preinit, 5000, 1);
  for (size_t i = 0; i < 1000; ++i) free(make(i, i));
  (void)!write(1, "all the way\n", 12);
}

int main(void) {
  atexit(at_exit);
  from_main = make(300, 3);
  return 0;
}
