// Tells the live view of itself, in C11, as the docstrings of live.h say. Prints what is not as
// they say.
#include <heapwright/live.h>
#include <stdint.h>
#include <stdio.h>

static void expect(int holds, const char* what) {
  if (!holds) printf("not so: %s\n", what);
}

int main(void) {
  expect(heapwright_live_mark("loading") == 1, "a mark is kept");
  // "Up to 55 bytes of the name are kept"
  expect(heapwright_live_mark("123456789012345678901234567890123456789012345678901234567890") == 1,
         "a long name is kept");

  // 3 MiB told, 1 MiB of it freed
  expect(heapwright_live_record_allocation((void*)(uintptr_t)0x10000000, 1u << 20) == 1, "memory is counted");
  expect(heapwright_live_record_allocation((void*)(uintptr_t)0x20000000, 2u << 20) == 1, "memory is counted");
  heapwright_live_record_free((void*)(uintptr_t)0x10000000, 1u << 20);

  // "several may have the same" name; "64 at a time"; "Its number; negative: there is none"
  const int textures = heapwright_live_open_meter("textures");
  const int same = heapwright_live_open_meter("textures");
  expect(textures >= 0 && same >= 0 && same != textures, "two meters of one name");
  const struct heapwright_live_meter figures = {
      .allocations = 7, .deallocations = 3, .failures = 2, .total_bytes = 7000, .in_use = 4321, .peak = 6543};
  heapwright_live_set_meter(textures, &figures);
  int meters[64];
  int n = 0;
  while (n < 64 && (meters[n] = heapwright_live_open_meter("another")) >= 0) ++n;
  expect(n == 62, "64 meters at a time");
  heapwright_live_close_meter(same);
  expect(heapwright_live_open_meter("in its place") >= 0, "a closed meter makes room");
  expect(heapwright_live_open_meter("one more") < 0, "and no more room");

  // "the first 64 marks"
  int kept = 2;
  for (int i = 0; i < 100; ++i) kept += heapwright_live_mark("more");
  expect(kept == 64, "64 marks are kept");
  expect(heapwright_live_reset() == 1, "the peak begins again");
  return 0;
}
