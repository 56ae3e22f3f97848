// Prints malloc_info three times, a line "--" between: at the start, with 100 MiB allocated (half
// in small blocks), and when they have been freed. malloc_info.py reads it.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/opaque.h"
#include "../support/require.h"

enum { count = 50000, size = 1024, large = 50 << 20 };

static void report(void) {
  REQUIRE(malloc_info(0, stdout) == 0);
  puts("--");
}

int main(void) {
  static void* small[count];
  report();
  for (int i = 0; i < count; ++i) REQUIRE((small[i] = opaque(malloc(opaque_size(size)))) != NULL);
  void* const one = opaque(malloc(opaque_size(large)));
  REQUIRE(one != NULL);
  report();
  for (int i = 0; i < count; ++i) free(small[i]);
  free(one);
  report();
  return 0;
}
