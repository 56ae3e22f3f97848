/* What callgrind counts: `pairs WHAT N` does WHAT N times and nothing else that depends on N. script/instructions runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { batch_size = 1000 };

static void pair(long n) {
  for (long i = 0; i < n; ++i) free(malloc(64));
}

static void mixed(long n) {
  for (long i = 0; i < n; ++i) free(malloc(32 + (size_t)(i * 48) % 225));
}

static void batch(long n) {
  static void* held[batch_size];
  for (long done = 0; done < n; done += batch_size) {
    for (int i = 0; i < batch_size; ++i) held[i] = malloc(64);
    for (int i = 0; i < batch_size; ++i) free(held[i]);
  }
}

static void shuffled(long n) {
  static void* held[batch_size];
  for (long done = 0; done < n; done += batch_size) {
    for (int i = 0; i < batch_size; ++i) held[i] = malloc(64);
    for (int i = 0; i < batch_size; ++i) free(held[i * 7919 % batch_size]);
  }
}

static void zeroed(long n) {
  for (long i = 0; i < n; ++i) free(calloc(1, 64));
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)(long);
  } all[] = {{"pair", pair}, {"mixed", mixed}, {"batch", batch}, {"shuffled", shuffled}, {"calloc", zeroed}};
  for (size_t i = 0; argc == 3 && i < sizeof all / sizeof *all; ++i) {
    if (strcmp(argv[1], all[i].name) == 0) return all[i].run(atol(argv[2])), 0;
  }
  return fprintf(stderr, "usage: pairs pair|mixed|batch|shuffled|calloc N\n"), 2;
}
