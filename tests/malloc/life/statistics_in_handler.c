// A signal handler interrupts malloc and asks for statistics, as a program does that ends in its
// handler: the heap's locks may be held by the code that was interrupted, so nothing may wait for
// them.
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "../support/opaque.h"
#include "../support/require.h"

static volatile sig_atomic_t asked;

static void ask(int signal) {
  (void)signal;
  const struct mallinfo2 info = mallinfo2();
  asked += info.arena > 0;
}

int main(void) {
  alarm(60);
  REQUIRE(signal(SIGPROF, ask) != SIG_ERR);
  void* blocks[64] = {NULL};
  size_t i = 0;
  for (int times = 0; times < 40; ++times) {
    // Once: a timer that goes on would come again before the handler has ended.
    const struct itimerval soon = {{0, 0}, {0, 1000 + times}};
    REQUIRE(setitimer(ITIMER_PROF, &soon, NULL) == 0);
    for (; asked <= times; ++i) {  // large blocks alone: each takes the lock of the page heap
      free(blocks[i % 64]);
      blocks[i % 64] = opaque(malloc(opaque_size(300000 + i * 4096 % 900000)));
    }
  }
  return 0;
}
