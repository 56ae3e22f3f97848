// A C program stays one: our malloc must bring no C++ runtime, nor anything but libc, into its
// process.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/opaque.h"
#include "../support/require.h"

int main(void) {
  free(opaque(malloc(opaque_size(100))));
  FILE* const maps = fopen("/proc/self/maps", "r");
  REQUIRE(maps != NULL);
  char line[4096];
  int ours = 0;
  while (fgets(line, sizeof line, maps) != NULL) {
    if (strstr(line, "libheapwright") != NULL) ours = 1;
    REQUIRE(strstr(line, "libstdc++") == NULL);
    REQUIRE(strstr(line, "libgcc_s") == NULL);
    REQUIRE(strstr(line, "libm.so") == NULL);
  }
  fclose(maps);
  REQUIRE(ours);
  return 0;
}
