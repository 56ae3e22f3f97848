// A heap in memory that the program has been given: a static array here, or shared memory, or that
// of a device. No system call, no malloc: every block lies in the array, and everything that
// best_fit knows of it too, but for the object itself.
#include <heapwright/kit.hpp>

#include <cstdio>
#include <cstring>

namespace {

using heap = heapwright::best_fit<heapwright::best_fit_plan{.merging = heapwright::merge::deferred}>;

void show(const char* when, const heap& h) {
  const heapwright::best_fit_stats s = h.stats();
  std::printf("%-16s%5zu bytes in use, %zu lost to rounding, %zu free at a piece\n", when, s.in_use, s.rounding,
              s.largest_free);
}

}  // namespace

int main() {
  alignas(16) static std::byte memory[64 * heapwright::KiB];
  heap h;
  if (h.allocate(100) != nullptr) return 1;  // it has no memory yet
  if (!h.attach(memory)) return 1;           // false: too small for a block, or attached already

  // As realloc: in place while there is room behind the block.
  auto* text = static_cast<char*>(h.allocate(6));
  std::strcpy(text, "hello");
  text = static_cast<char*>(h.reallocate(text, 5000));
  std::printf("%s, in %zu bytes\n", text, h.usable_size(text));

  void* blocks[40];
  for (void*& block : blocks) block = h.allocate(1000);
  show("filled", h);

  // With deferred merging a free is quick and leaves neighbours apart, until a request finds no
  // block that is large enough.
  for (void* block : blocks) h.deallocate(block);
  show("freed", h);
  std::printf("merged: %zu bytes are untouched again\n", h.defragment());
  show("defragmented", h);

  h.for_each_live([](const void*, std::size_t bytes) { std::printf("still live: a block of %zu bytes\n", bytes); });
  h.reset();
  show("reset", h);
}
