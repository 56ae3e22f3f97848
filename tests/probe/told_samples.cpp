// Allocates and frees, and prints what the tracepoints should say of it. told_samples_test.py
// compares.
//
//   told_samples each         sampled POINTER BYTES, freed POINTER, in this order
//   told_samples some         block POINTER BYTES; all are freed
//   told_samples large_heap   thinned SAMPLES; nothing is freed
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <malloc.h>

#include "own_segment.hpp"

namespace {

std::uintptr_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

void print(const char* what, void* p) { std::printf("%s %#zx %zu\n", what, address_of(p), malloc_usable_size(p)); }

void print_freed(std::uintptr_t p) { std::printf("freed %#zx\n", p); }

void free_printed(void* p) {
  print_freed(address_of(p));
  std::free(p);
}

void each() {
  void* p = std::malloc(1000);
  print("sampled", p);
  free_printed(p);

  p = std::malloc(100);
  void* const in_the_way = std::malloc(100);
  print("sampled", p);
  print("sampled", in_the_way);
  std::uintptr_t before = address_of(p);
  p = std::realloc(p, 5000);
  print_freed(before);
  print("sampled", p);

  volatile std::size_t too_long = PTRDIFF_MAX - 4096;
  if (std::realloc(p, too_long) != nullptr) std::_Exit(2);
  std::free(nullptr);

  before = address_of(p);
  p = std::realloc(p, 4000);
  print_freed(before);
  print("sampled", p);
  free_printed(p);
  free_printed(in_the_way);
}

void some() {
  static std::array<void*, 300> blocks;
  for (void*& p : blocks) print("block", p = std::malloc(4000));
  for (void* p : blocks) std::free(p);
}

/// More samples are live than the probe keeps. They are more often than the program's processor
/// time allows.
void large_heap() {
  const probe_test::own_segment segment;
  static std::array<void*, 20'000> blocks;
  for (void*& p : blocks) {
    segment.header().interval.store(4096 | heapwright::segment::interval_adapts);
    p = std::malloc(8000);
  }
  std::printf("thinned %ju\n", static_cast<std::uintmax_t>(segment.read().thinned_samples));
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // it calls no malloc then
  const char* const what = argc > 1 ? argv[1] : "";
  if (std::strcmp(what, "each") == 0) each();
  if (std::strcmp(what, "some") == 0) some();
  if (std::strcmp(what, "large_heap") == 0) large_heap();
  std::_Exit(0);  // what ends with the process frees nothing
}
