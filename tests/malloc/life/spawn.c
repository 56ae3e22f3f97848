// vfork and exec, posix_spawn and system, from a program whose other threads are busy in malloc:
// the child shares the parent's memory until it execs, and runs under the same malloc.
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "../support/opaque.h"
#include "../support/require.h"

static atomic_bool done;

static void* churn(void* unused) {
  for (size_t i = 0; !done; ++i) free(opaque(malloc(opaque_size(i * 97 % 70000))));
  return unused;
}

static void must_end_well(pid_t child) {
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

int main(void) {
  alarm(60);
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) REQUIRE(pthread_create(&threads[i], NULL, churn, NULL) == 0);
  char* const arguments[] = {"true", NULL};
  for (int i = 0; i < 30; ++i) {
    const pid_t forked = vfork();
    if (forked == 0) {
      execv("/bin/true", arguments);
      _exit(1);
    }
    must_end_well(forked);
    pid_t spawned = 0;
    REQUIRE(posix_spawn(&spawned, "/bin/true", NULL, NULL, arguments, environ) == 0);
    must_end_well(spawned);
  }
  REQUIRE(system("true") == 0);
  done = true;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  return 0;
}
