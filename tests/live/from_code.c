/* The C side of live.h: each function once. Prints what they said. */
#include <heapwright/live.h>

int main(void) {
  char url[256];
  const struct heapwright_live_meter figures = {3, 1, 1, 300, 200, 300};
  heapwright_live_set_meter(1000, &figures); /* that was never opened */
  heapwright_live_close_meter(1000);
  const int unnamed = heapwright_live_mark(0);
  const int error = heapwright_live_start(0, 0, url, sizeof url);
  const int meter = heapwright_live_open_meter("textures");
  heapwright_live_set_meter(meter, &figures);
  printf("%d %d %d %d %d %s\n", error + unnamed, heapwright_live_mark("begin"), heapwright_live_reset(),
         heapwright_live_record_allocation(url, 12345), meter, url);
  fflush(stdout);
  (void)getchar();
  heapwright_live_record_free(url, 12345);
  heapwright_live_close_meter(meter);
  return 0;
}
