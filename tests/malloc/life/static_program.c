// A statically linked program on our malloc, with glibc or with musl: threads, fork, blocks of
// every kind, and no way back to libc's own malloc, which is not in the program.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "../support/opaque.h"
#include "../support/pattern.h"
#include "../support/require.h"

size_t malloc_usable_size(void*);

enum { block_count = 1000 };

static void* use_malloc(void* seed) {
  void* p[block_count];
  for (size_t i = 0; i < block_count; ++i) {
    p[i] = i % 100 == 0 ? opaque(aligned_alloc(4096, i * 40)) : opaque(malloc(opaque_size(i * 13)));
    REQUIRE(p[i] != NULL && malloc_usable_size(p[i]) >= i * 13);
    pattern_fill(p[i], i * 13, i + (size_t)seed, 0);
  }
  for (size_t i = 0; i < block_count; ++i) {
    REQUIRE(pattern_holds(p[i], i * 13, i + (size_t)seed));
    p[i] = realloc(p[i], i * 20 + 1);
    REQUIRE(p[i] != NULL && pattern_holds(p[i], i * 13, i + (size_t)seed));
  }
  for (size_t i = 0; i < block_count; ++i) free(p[i]);
  return seed;
}

static void run_threads(void) {
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; ++i) REQUIRE(pthread_create(&threads[i], NULL, use_malloc, (void*)i) == 0);
  for (int i = 0; i < 4; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
  alarm(60);
  use_malloc(NULL);
  run_threads();
  char* const zeroed = (char*)calloc(1, opaque_size(1000000));
  REQUIRE(zeroed != NULL && all_zero(zeroed, 1000000));
  free(zeroed);
  errno = 0;
  REQUIRE(opaque(malloc(opaque_size(SIZE_MAX - 100))) == NULL && errno == ENOMEM);
  for (int i = 0; i < 5; ++i) {
    void* const inherited = opaque(malloc(opaque_size(50000)));
    const pid_t child = fork();
    if (child == 0) {
      free(inherited);
      run_threads();
      _exit(0);
    }
    free(inherited);
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  }
  return 0;
}
