// Allocates, says nothing and succeeds: for tests of what the library itself says.
#include <stdlib.h>

#include "../support/opaque.h"

int main(void) {
  for (size_t i = 0; i < 1000; ++i) free(opaque(malloc(opaque_size(i * 1000))));
  return 0;
}
