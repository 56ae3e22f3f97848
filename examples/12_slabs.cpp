// Slabs: blocks of one size, tracked by a bitmap apart from them. A double free ends the program in
// every build, and a program that gives much back says how much it wants to keep.
#include <heapwright/kit.hpp>

#include <cstdio>
#include <vector>

namespace {

struct order {
  int number;
  double amount;
};

template <class Slab>
void show(const char* when, const Slab& slab) {
  const heapwright::slab_stats s = slab.stats();
  std::printf("%-8s%3zu slabs of %zu KiB, %zu bytes in use\n", when, s.slabs, s.held / s.slabs / heapwright::KiB,
              s.in_use);
}

}  // namespace

int main() {
  // Slabs of 64 KiB; two of them stay when they are empty, the others go back to the system at
  // once.
  constexpr heapwright::slab_plan plan{.bytes = 64 * heapwright::KiB, .keep_empty = 2};
  heapwright::slab<heapwright::system_pages> orders(heapwright::layout::of<order>(), plan);

  std::vector<void*> open;
  for (int i = 0; i < 40'000; ++i) open.push_back(orders.allocate());
  show("filled", orders);
  for (void* block : open) orders.deallocate(block);
  show("freed", orders);

  // What the two hold goes back when the program says so.
  const std::size_t bytes = orders.trim();
  std::printf("trim gave back %zu KiB\n", bytes / heapwright::KiB);
}
