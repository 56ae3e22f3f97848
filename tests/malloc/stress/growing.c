// Buffers that grow by realloc, as strings and vectors of C programs do, some at a time so that
// they stand in each other's way. Their contents must be kept when blocks grow in place, move or
// cannot grow; a null result leaves the old block as it was.
#include <malloc.h>
#include <stdlib.h>

#include "../support/opaque.h"
#include "../support/pattern.h"
#include "../support/require.h"

enum { buffers = 3, start = 1000, end = 3 << 20 };

int main(void) {
  char* buffer[buffers] = {NULL};
  size_t size[buffers] = {0};
  for (size_t to = start; to < end; to += to / 2) {
    for (size_t i = 0; i < buffers; ++i) {
      const size_t wanted = to + i * 5000;
      char* const grown = (char*)realloc(buffer[i], opaque_size(wanted));
      if (grown == NULL) {
        REQUIRE(getenv("STRESS_MAY_FAIL") != NULL);
        REQUIRE(pattern_holds(buffer[i], size[i], i));
        continue;
      }
      buffer[i] = grown;
      REQUIRE(malloc_usable_size(grown) >= wanted);
      REQUIRE(pattern_holds(grown, size[i], i));
      pattern_fill(grown, wanted, i, size[i]);
      size[i] = wanted;
    }
  }
  for (size_t i = 0; i < buffers; ++i) {
    REQUIRE(pattern_holds(buffer[i], size[i], i));
    free(buffer[i]);
  }
  return 0;
}
