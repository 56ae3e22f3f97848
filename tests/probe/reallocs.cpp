// Runs under the probe without samples, so that each realloc takes the short way, and compares what
// it has counted with what was done: a free in the old block's class and an allocation in the new
// one's, or, where realloc fails, nothing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <malloc.h>

#include "own_segment.hpp"

namespace {

using heapwright::segment::size_scale;
using probe_test::figures;

figures expected;

void allocated(void* p, std::size_t requested) {
  const std::size_t bytes = malloc_usable_size(p);
  ++expected.classes[size_scale::index(bytes)].allocations;
  expected.classes[size_scale::index(bytes)].allocated_bytes += bytes;
  expected.classes[size_scale::index(bytes)].requested_bytes += requested;
}

void freeing(std::size_t bytes) {
  ++expected.classes[size_scale::index(bytes)].frees;
  expected.classes[size_scale::index(bytes)].freed_bytes += bytes;
}

void* reallocate(void* p, std::size_t size) {
  const std::size_t before = p == nullptr ? 0 : malloc_usable_size(p);
  void* const moved = std::realloc(p, size);
  if (moved == nullptr && size != 0) return p;
  if (p != nullptr) freeing(before);
  if (moved != nullptr) allocated(moved, size);
  return moved;
}

bool agree(const char* what, unsigned c, std::uint64_t counted, std::uint64_t done) {
  if (counted != done)
    std::printf("class %u: %s %llu, should be %llu\n", c, what, static_cast<unsigned long long>(counted),
                static_cast<unsigned long long>(done));
  return counted == done;
}

}  // namespace

int main() {
  std::free(std::malloc(1));  // the thread has its slot from here on
  const probe_test::own_segment segment;
  const figures before = segment.read();
  volatile std::size_t too_long = PTRDIFF_MAX - 4096;
  for (int round = 0; round < 100; ++round) {
    void* p = nullptr;
    for (const std::size_t size : {10, 24, 30, 100, 1000, 900, 40'000, 3'000'000, 2'000'000, 500, 16}) {
      p = reallocate(p, size);
      if (reallocate(p, too_long) != p) return 2;
    }
    p = reallocate(p, 0);  // null, or a block of no bytes
    if (p != nullptr) {
      freeing(malloc_usable_size(p));
      std::free(p);
    }
  }
  const figures after = segment.read();
  bool is_right = agree("samples", 0, after.live_samples, 0);
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const auto &a = after.classes[c], &b = before.classes[c], &e = expected.classes[c];
    is_right &= agree("allocations", c, a.allocations - b.allocations, e.allocations);
    is_right &= agree("allocated bytes", c, a.allocated_bytes - b.allocated_bytes, e.allocated_bytes);
    is_right &= agree("requested bytes", c, a.requested_bytes - b.requested_bytes, e.requested_bytes);
    is_right &= agree("frees", c, a.frees - b.frees, e.frees);
    is_right &= agree("freed bytes", c, a.freed_bytes - b.freed_bytes, e.freed_bytes);
  }
  return is_right ? 0 : 1;
}
