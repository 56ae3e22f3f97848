// A program that keeps, hides or loses blocks, as its argument says, and ends. Each block has a
// size of its own.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

struct node {
  struct node* volatile next;
  char rest[992];
};

static void* volatile kept;
static volatile uintptr_t encoded;
static void* volatile* mapped;
static _Thread_local void* volatile of_the_thread;

NOINLINE void* make(size_t size) {
  void* const p = malloc(size);
  memset(p, 0, size);
  __asm__ volatile("" : : "r"(p) : "memory");
  return p;
}

NOINLINE void lose_one(void) { make(1000); }
NOINLINE void lose_another(void) { make(3000); }

NOINLINE void lose_chain(void) {
  struct node* const a = make(sizeof *a);
  a->next = make(sizeof *a);
  a->next->next = make(sizeof *a);
}

NOINLINE void lose_cycle(void) {
  struct node* const a = make(sizeof *a);
  a->next = make(sizeof *a);
  a->next->next = a;
}

NOINLINE void keep_by_global(void) { kept = make(1000); }
NOINLINE void keep_by_thread_local(void) { of_the_thread = make(1000); }

NOINLINE void keep_by_inner_pointer(void) { kept = (char*)make(1000) + 500; }
NOINLINE void keep_by_tagged_pointer(void) { kept = (void*)((uintptr_t)make(1000) | (uintptr_t)0xab << 56); }
NOINLINE void keep_encoded(void) { encoded = ~(uintptr_t)make(1000); }

NOINLINE void keep_in_mapping(int flags) {
  mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  *mapped = make(1000);
}

NOINLINE void keep_in_freed_memory(void) {
  void* volatile* const p = make(4000);
  p[100] = make(1000);
  free((void*)p);
}

NOINLINE void keep_in_block(void) {
  struct node* const a = make(sizeof *a);
  a->next = make(3000);
  kept = a;
}

// Leaves no address of a block on the part of the stack that is used again, nor in registers.
NOINLINE void forget(void) {
  volatile char stack[16384];
  for (size_t i = 0; i < sizeof stack; ++i) stack[i] = 0;
}

static void free_kept(void) { free(kept); }

static void* thread_that_waits(void* unused) {
  void* volatile on_the_stack = make(1000);
  kept = unused;
  encoded = 1;
  while (on_the_stack != NULL) pause();
  return NULL;
}

static void keep_on_the_stack_of_a_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, thread_that_waits, NULL);
  while (encoded == 0) usleep(1000);
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const char* const what = argv[i];
#define WHEN(name, action) \
  if (strcmp(what, name) == 0) action
    WHEN("lose", lose_one());
    WHEN("lose-another", lose_another());
    WHEN("lose-chain", lose_chain());
    WHEN("lose-cycle", lose_cycle());
    WHEN("global", keep_by_global());
    WHEN("thread-local", keep_by_thread_local());
    WHEN("inner", keep_by_inner_pointer());
    WHEN("tagged", keep_by_tagged_pointer());
    WHEN("encoded", keep_encoded());
    WHEN("mapped", keep_in_mapping(MAP_PRIVATE));
    WHEN("shared", keep_in_mapping(MAP_SHARED));
    WHEN("freed", keep_in_freed_memory());
    WHEN("block", keep_in_block());
    WHEN("thread", keep_on_the_stack_of_a_thread());
    WHEN("free-at-exit", atexit(free_kept));
    forget();
    WHEN("exit", exit(9));
    WHEN("_exit", _exit(9));
    WHEN("quick_exit", quick_exit(9));
    WHEN("abort", abort());
    WHEN("term", raise(SIGTERM));
    WHEN("kill", raise(SIGKILL));
    WHEN(
        "fork", if (fork() != 0) {
          wait(NULL);
          _exit(0);
        });
    WHEN("exec", execlp("true", "true", (char*)NULL));
  }
  return 0;
}
