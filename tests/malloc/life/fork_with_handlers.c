// fork in a program with a library that allocates in its fork handlers (atfork_handlers.c), and
// with handlers of its own that do. A deadlock ends in the alarm.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "../support/opaque.h"
#include "../support/require.h"

int atfork_handler_calls(void);

static void allocate(void) {
  for (size_t size = 1; size < 100000; size += size / 4 + 1) free(opaque(malloc(opaque_size(size))));
}

int main(void) {
  alarm(60);
  pthread_atfork(allocate, allocate, allocate);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      allocate();
      _exit(atfork_handler_calls() == 2 * (i + 1) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  return 0;
}
