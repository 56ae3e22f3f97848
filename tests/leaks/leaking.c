/* Programs that leak in a known way, chosen by the first argument. Each block is 100 bytes unless said otherwise.
 *
 * What is lost is lost in functions of its own, whose frames clear_stack overwrites: an address left on the stack would
 * make a block reachable. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline))

struct node {
  struct node* next;
  char rest[92];
};

static struct node* volatile kept;
static _Thread_local struct node* volatile kept_by_thread;
static void* volatile sink;

APART static void clear_stack(void) {
  char room[4096];
  memset(room, 0, sizeof room);
  sink = room;
  sink = 0;
}

APART static struct node* make_node(struct node* next) {
  struct node* n = malloc(sizeof *n);
  memset(n, 0, sizeof *n);
  n->next = next;
  return n;
}

APART static void lose_nodes(int count) {
  for (int i = 0; i < count; ++i) {
    struct node* n = make_node(0); /* lost here */
    if (i == count / 2) kept = n;
  }
}

APART static void lose_chain(int count) {
  struct node* first = 0;
  for (int i = 0; i < count; ++i) first = make_node(first);
}

APART static void lose_circle(int count) {
  struct node* last = make_node(0);
  struct node* first = last;
  for (int i = 1; i < count; ++i) first = make_node(first);
  last->next = first;
}

/* The only pointer to a node is in a block that has been freed. */
APART static void keep_in_freed_block(void) {
  struct node* volatile* blocks[8]; /* volatile: a store before free would be left out */
  for (int i = 0; i < 8; ++i) blocks[i] = calloc(16, sizeof(struct node*));
  blocks[4][8] = make_node(0);
  kept = (struct node*)blocks[0]; /* the others are lost too */
  free((void*)blocks[4]);
}

APART static void keep_inside(void) {
  char* block = malloc(1000);
  kept = (struct node*)(block + 500);
}

APART static void keep_behind_mapping(void) {
  struct node** page = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  page[5000] = make_node(0);
  kept = (struct node*)1;
}

APART static void lose_long_blocks(int count) {
  for (int i = 0; i < count; ++i) sink = malloc(1000000); /* mappings of their own */
  sink = 0;
}

/* The address is in registers that the system call does not look at. */
APART static void lose_in_exit(void) {
  struct node* n = make_node(0);
  syscall(SYS_exit_group, 0, n, n, n);
}

static pthread_barrier_t both;

APART static void* waiting_thread(void* unused) {
  struct node* volatile on_stack = make_node(0);
  kept_by_thread = make_node(0);
  pthread_barrier_wait(&both);
  pause();
  return (void*)on_stack->next + (uintptr_t)unused;
}

APART static void* losing_thread(void* unused) {
  for (int i = 0; i < 3; ++i) make_node(0);
  clear_stack();
  return unused;
}

/* What it leaves on its stack is of nobody once it has ended. */
APART static void* remembering_thread(void* unused) {
  struct node* volatile nodes[64];
  for (int i = 0; i < 64; ++i) nodes[i] = make_node(0);
  return nodes[0] == unused ? unused : 0;
}

APART static void* exiting_thread(void* code) {
  lose_nodes(2);
  clear_stack();
  exit((int)(intptr_t)code);
}

APART static void lose_path(void) {
  sink = getcwd(0, 0);
  sink = 0;
}

APART static void start(void* (*function)(void*), int joined, void* argument) {
  pthread_t thread;
  pthread_create(&thread, 0, function, argument);
  if (joined) pthread_join(thread, 0);
}

APART static void free_at_exit(void) {
  free(kept);
  kept = 0;
}

APART static void run(const char* how) {
  if (strcmp(how, "most") == 0) lose_nodes(500);
  if (strcmp(how, "list") == 0)
    for (int i = 0; i < 100; ++i) kept = make_node(kept);
  if (strcmp(how, "chain") == 0) lose_chain(10);
  if (strcmp(how, "circle") == 0) lose_circle(10);
  if (strcmp(how, "freed") == 0) keep_in_freed_block();
  if (strcmp(how, "inside") == 0) keep_inside();
  if (strcmp(how, "mapping") == 0) keep_behind_mapping();
  if (strcmp(how, "long") == 0) lose_long_blocks(3);
  if (strcmp(how, "tagged") == 0) kept = (struct node*)((uintptr_t)make_node(0) | (uintptr_t)0xab << 56);
  if (strcmp(how, "thread-local") == 0) kept_by_thread = make_node(0);
  if (strcmp(how, "running-thread") == 0) {
    pthread_barrier_init(&both, 0, 2);
    start(waiting_thread, 0, 0);
    pthread_barrier_wait(&both);
  }
  if (strcmp(how, "losing-thread") == 0) start(losing_thread, 1, 0);
  if (strcmp(how, "remembering-thread") == 0) start(remembering_thread, 1, 0);
  if (strcmp(how, "exiting-thread") == 0) {
    start(exiting_thread, 0, (void*)5);
    for (;;) pause();
  }
  if (strcmp(how, "main-thread-first") == 0) {
    start(losing_thread, 0, 0);
    pthread_exit(0);
  }
  if (strcmp(how, "atexit") == 0) {
    kept = make_node(0);
    atexit(free_at_exit);
  }
  if (strcmp(how, "fork-library") == 0) {
    free(getcwd(0, 0)); /* the parent calls it first */
    if (fork() == 0) {
      lose_path();
      clear_stack();
      _exit(0);
    }
    wait(0);
  }
  if (strcmp(how, "fork") == 0) {
    lose_nodes(3); /* the parent's: told once */
    if (fork() == 0) {
      lose_chain(4);
      clear_stack();
      _exit(0);
    }
    wait(0);
  }
}

/* So far below main's frame that clear_stack reaches all that it leaves. */
APART static void run_below(const char* how) {
  char room[512];
  sink = room;
  run(how);
  sink = 0;
}

int main(int count, char** arguments) {
  const char* how = count > 1 ? arguments[1] : "";
  const char* end = count > 2 ? arguments[2] : "return";
  run_below(how);
  clear_stack();
  if (strcmp(how, "in-exit") == 0) lose_in_exit();
  if (strcmp(end, "exit") == 0) exit(3);
  if (strcmp(end, "_exit") == 0) _exit(3);
  if (strcmp(end, "quick_exit") == 0) quick_exit(3);
  if (strcmp(end, "abort") == 0) abort();
  if (strcmp(end, "segv") == 0) raise(SIGSEGV);
  if (strcmp(end, "kill") == 0) raise(SIGKILL);
  if (strcmp(end, "term") == 0) raise(SIGTERM);
  if (strcmp(end, "exec") == 0) execl("/proc/self/exe", arguments[0], "chain", (char*)0);
  if (strcmp(end, "busy-exec") == 0) {
    pthread_barrier_init(&both, 0, 2);
    start(waiting_thread, 0, 0);
    pthread_barrier_wait(&both);
    execl("/proc/self/exe", arguments[0], "chain", (char*)0);
  }
  if (strcmp(end, "wait") == 0) {
    puts("ready");
    fflush(stdout);
    pause();
  }
  return 0;
}
