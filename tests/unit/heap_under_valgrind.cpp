// Valgrind sees every block of a heap of one's own that is compiled with HEAPWRIGHT_DEFAULT_MALLOC.
// Run under valgrind; ends with 1 if that is not so.
#define HEAPWRIGHT_DEFAULT_MALLOC
#include <heapwright/heap.hpp>

#include <cstdio>

#include <valgrind/memcheck.h>

int main() {
  heapwright::heap<heapwright::default_recipe> h;
  volatile std::size_t size = 100;  // or the compiler warns
  auto* const p = static_cast<volatile char*>(h.allocate(size));
  p[99] = 1;
  const unsigned before = VALGRIND_COUNT_ERRORS;
  p[size] = 1;
  const unsigned past_the_end = VALGRIND_COUNT_ERRORS;
  h.deallocate(const_cast<char*>(p));
  p[0] = 1;
  const unsigned after_the_free = VALGRIND_COUNT_ERRORS;
  std::printf("%u %u %u\n", before, past_the_end, after_the_free);
  return before == 0 && past_the_end == 1 && after_the_free == 2 ? 0 : 1;
}
