// A library that allocates before main, and before the probe's own constructor.
#include <stdlib.h>

void* volatile kept[2];

__attribute__((constructor)) void before_main(void) {
  kept[0] = malloc(70001);
  kept[1] = malloc(70002);
}

void* block_from_library(void) {
  void* volatile p = malloc(70003);  // not the function's last step, which would leave no frame
  return p;
}
