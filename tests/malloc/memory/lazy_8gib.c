// Asking costs nothing: 8 GiB are allocated, a few pages of them used, the block made longer, and
// zeroed memory of that size asked for. Only what was touched may be resident. Wants a system that
// lets a process reserve that much.
#include <stdio.h>
#include <stdlib.h>

#include "../support/opaque.h"
#include "../support/resident.h"

int main(void) {
  const size_t size = opaque_size((size_t)8 << 30), step = (size_t)256 << 20, allowed = 8 << 20;
  const size_t before = resident_bytes();
  char* p = (char*)malloc(size);
  if (p == NULL) return fputs("skipped: the system does not let this process reserve 8 GiB\n", stderr), exit_skipped;
  for (size_t i = 0; i < size; i += step) p[i] = (char)(1 + i / step);
  REQUIRE(resident_bytes() < before + allowed);
  p = (char*)realloc(p, size + size / 2);
  REQUIRE(p != NULL);
  for (size_t i = 0; i < size; i += step) REQUIRE(p[i] == (char)(1 + i / step));
  REQUIRE(resident_bytes() < before + allowed);
  free(p);
  p = (char*)calloc(2, size / 2);
  REQUIRE(p != NULL);
  for (size_t i = 0; i < size; i += step) REQUIRE(p[i] == 0);
  REQUIRE(resident_bytes() < before + allowed);
  free(p);
  fprintf(stderr, "before %zu KiB, after %zu KiB\n", before / 1024, resident_bytes() / 1024);
  REQUIRE(resident_bytes() < before + allowed);
  REQUIRE(address_space_bytes() < size / 2);
  return 0;
}
