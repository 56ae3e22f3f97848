/* A program that is linked with heapwright's malloc: glibc would say 24 for a block of 20 bytes. */
#include <malloc.h>
#include <stdlib.h>

int main(void) {
  void* p = malloc(20);
  int good = p != NULL && malloc_usable_size(p) == 32;
  free(p);
  return good ? 0 : 1;
}
