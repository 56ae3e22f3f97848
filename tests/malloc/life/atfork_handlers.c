// A library whose constructor registers fork handlers that allocate, as crypto and logging
// libraries do. Its constructor runs before that of a preloaded malloc, so its handlers run while
// the malloc's own are in force; fork must not wait for itself.
#include <pthread.h>
#include <stdlib.h>

#include "../support/opaque.h"
#include "../support/require.h"

int atfork_handler_calls(void);

static int calls;

static void allocate_in_every_class(void) {
  enum { count = 300 };
  void* p[count];
  for (size_t size = 16; size <= 1 << 20; size *= 2) {
    for (int i = 0; i < count; ++i) REQUIRE((p[i] = opaque(malloc(opaque_size(size)))) != NULL);
    for (int i = 0; i < count; ++i) free(p[i]);
  }
  ++calls;
}

int atfork_handler_calls(void) { return calls; }

__attribute__((constructor)) static void start(void) {
  pthread_atfork(allocate_in_every_class, allocate_in_every_class, allocate_in_every_class);
}
