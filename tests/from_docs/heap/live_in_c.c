// States what the documentation says of live.h in a process without the probe, in C11. Written
// without the code.
#include <heapwright/live.h>
#include <stddef.h>

int live_does_nothing_in_c(void) {
  char block[8];
  if (heapwright_live_mark("here") != 0) return 1;                            // "1: it was kept."
  if (heapwright_live_reset() != 0) return 2;                                 // "1: it has."
  if (heapwright_live_record_allocation(block, sizeof block) != 0) return 3;  // "1: it was counted."
  heapwright_live_record_free(block, sizeof block);
  const int meter = heapwright_live_open_meter("textures");
  if (meter >= 0) return 4;  // "negative: there is none"
  const struct heapwright_live_meter figures = {.allocations = 1, .in_use = 8};
  heapwright_live_set_meter(meter, &figures);
  heapwright_live_close_meter(meter);
  return 0;
}
