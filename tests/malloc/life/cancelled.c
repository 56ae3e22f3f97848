/* malloc and free are no cancellation points (POSIX.1-2024, 2.9.5): a thread that is cancelled goes on until it comes to one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { blocks = 300, threads = 200, longest = 60000 };

static int finished;

static void* allocate_while_cancelled(void* unused) {
  void* all[blocks];
  (void)unused;
  pthread_cancel(pthread_self());
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < blocks; ++i) {
      all[i] = malloc(1 + (size_t)(i * 7919) % longest);
      if (all[i] == NULL) return NULL;
      memset(all[i], round, 1);
    }
    for (int i = 0; i < blocks; ++i) free(all[i]);
  }
  __atomic_fetch_add(&finished, 1, __ATOMIC_RELAXED);
  pthread_testcancel();
  return NULL;
}

int main(void) {
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    void* end = NULL;
    if (pthread_create(&thread, NULL, allocate_while_cancelled, NULL) != 0) return 2;
    pthread_join(thread, &end);
    if (end != PTHREAD_CANCELED) {
      printf("a thread was not cancelled\n");
      return 1;
    }
  }
  printf("%d of %d threads came to their cancellation point\n", finished, threads);
  return finished == threads ? 0 : 1;
}
