// The library opened with dlopen by a program that runs on another malloc: it needs room in static
// TLS, which is scarce by then, and lives beside libc's malloc; each of the two is given the
// other's pointers only through the library's own entries.
//
//   opened_at_run_time LIBRARY [checked]        a checked build does not take libc's pointers
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "../support/opaque.h"
#include "../support/pattern.h"
#include "../support/require.h"

static void* (*their_malloc)(size_t);
static void* (*their_realloc)(void*, size_t);
static void (*their_free)(void*);

static void* work(void* seed) {
  enum { count = 2000 };
  void* p[count];
  for (size_t i = 0; i < count; ++i) pattern_fill(p[i] = their_malloc(i), i, i + (size_t)seed, 0);
  for (size_t i = 0; i < count; ++i) {
    REQUIRE(pattern_holds(p[i], i, i + (size_t)seed));
    p[i] = their_realloc(p[i], i * 2 + 1);
    REQUIRE(pattern_holds(p[i], i, i + (size_t)seed));
    their_free(p[i]);
  }
  return NULL;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2 || argc == 3);
  pthread_t before, after;
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  REQUIRE(library != NULL);
  *(void**)&their_malloc = dlsym(library, "malloc");
  *(void**)&their_realloc = dlsym(library, "realloc");
  *(void**)&their_free = dlsym(library, "free");
  REQUIRE(their_malloc != NULL && their_malloc != malloc);
  REQUIRE(pthread_create(&before, NULL, work, (void*)1) == 0);
  REQUIRE(pthread_create(&after, NULL, work, (void*)2) == 0);
  work((void*)3);
  pthread_join(before, NULL);
  pthread_join(after, NULL);

  // A block of libc's malloc is passed on to it.
  if (argc == 2) {
    void* const libcs = opaque(malloc(opaque_size(1000)));
    pattern_fill(libcs, 1000, 9, 0);
    void* const grown = their_realloc(libcs, 5000);
    REQUIRE(grown != NULL && pattern_holds(grown, 1000, 9));
    their_free(grown);
  }

  // Closing must leave the code there: blocks outlive it.
  void* const kept = their_malloc(100);
  dlclose(library);
  their_free(kept);
  return 0;
}
