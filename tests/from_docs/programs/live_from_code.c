// Calls the functions of heapwright/live.h and prints their answers. With "wait" or "start" it ends
// when stdin does.
#include <heapwright/live.h>

int main(int argc, char** argv) {
  const struct heapwright_live_meter figures = {1, 2, 3, 4, 5, 6};
  const void* const block = (const void*)(uintptr_t)0x1000;
  const char* const what = argc > 1 ? argv[1] : "";
  const int mark = heapwright_live_mark("loaded");
  const int reset = heapwright_live_reset();
  const int recorded = heapwright_live_record_allocation(block, 5000000);
  const int meter = heapwright_live_open_meter("textures");
  heapwright_live_set_meter(meter, &figures);
  printf("%d %d %d %d\n", mark, reset, recorded, meter >= 0);
  if (strcmp(what, "start") == 0) {
    char url[200];
    const int error = heapwright_live_start(NULL, 0, url, sizeof url);
    printf("%d %s\n", error, url);
  }
  if (strcmp(what, "meters") == 0) {
    int count = meter >= 0;
    while (count < 200 && heapwright_live_open_meter("another") >= 0) ++count;
    printf("%d\n", count);
  }
  fflush(stdout);
  if (strcmp(what, "wait") == 0 || strcmp(what, "start") == 0) getchar();
  if (strcmp(what, "free") == 0) heapwright_live_record_free(block, 5000000);
  heapwright_live_close_meter(meter);
  return 0;
}
