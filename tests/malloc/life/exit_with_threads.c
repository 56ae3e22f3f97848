// The process ends while threads are in the middle of malloc and free: by return from main, and
// with destructors that allocate. Threads are cancelled as well, asynchronously only where that is
// allowed: at a cancellation point.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "../support/opaque.h"
#include "../support/require.h"

static void* churn(void* unused) {
  (void)unused;
  for (size_t i = 0;; ++i) free(opaque(malloc(opaque_size(i * 97 % 70000))));
  return NULL;
}

static void* churn_until_cancelled(void* unused) {
  for (size_t i = 0;; ++i) {
    void* const p = opaque(malloc(opaque_size(i * 97 % 70000)));
    free(p);
    pthread_testcancel();
  }
  return unused;
}

__attribute__((destructor)) static void last(void) {
  for (size_t i = 0; i < 10000; ++i) free(opaque(malloc(opaque_size(i))));
}

int main(void) {
  alarm(60);
  for (int i = 0; i < 50; ++i) {
    pthread_t cancelled;
    REQUIRE(pthread_create(&cancelled, NULL, churn_until_cancelled, NULL) == 0);
    nanosleep(&(struct timespec){0, 300000}, NULL);
    REQUIRE(pthread_cancel(cancelled) == 0);
    void* result = NULL;
    REQUIRE(pthread_join(cancelled, &result) == 0 && result == PTHREAD_CANCELED);
  }
  for (int i = 0; i < 6; ++i) {
    pthread_t running;
    REQUIRE(pthread_create(&running, NULL, churn, NULL) == 0);
  }
  nanosleep(&(struct timespec){0, 20000000}, NULL);
  return 0;
}
