// The least program: it prints one line, as everybody's first one does, and what it cost: resident and peak bytes.
#include <stdio.h>

#include "../support/resident.h"

int main(void) {
  puts("hello, world");
  printf("%zu %zu\n", resident_bytes(), peak_resident_bytes());
  return 0;
}
