// A program that has the single header and nothing else of the kit.
#include "heapwright.hpp"

#include <cstdio>
#include <list>
#include <memory_resource>
#include <vector>

namespace {

constexpr heapwright::recipe small{.pages = {.limit = 64 * heapwright::MiB}};

/// First: GCC 12 did not compile it where nothing had called the heap before.
bool pmr_works() {
  heapwright::heap<> heap("of std::pmr");
  heapwright::resource<heapwright::upstream<heapwright::heap<>>> memory(heap);
  const std::pmr::vector<int> numbers({1, 2, 3}, &memory);
  return numbers.size() == 3 && heap.statistics().in_use > 0;
}

bool kit_works() {
  heapwright::stack_arena<1024> arena;
  std::vector<int, heapwright::std_allocator<int, heapwright::stack_arena<1024>>> numbers({1, 2, 3}, arena);
  heapwright::concurrent_pool<> pool(heapwright::layout{64, 8});
  void* const block = pool.allocate();
  pool.deallocate(block);
  alignas(16) static std::byte memory[64 * 1024];
  heapwright::best_fit<> range(memory);
  void* const p = range.reallocate(range.allocate(100), 5000);
  range.deallocate(p);
  return block != nullptr && p != nullptr && range.stats().in_use == 0 && numbers.size() == 3;
}

bool heaps_work() {
  heapwright::heap<small> heap("of the single header");
  heapwright::local_heap<> local;
  std::list<int, heapwright::std_allocator<int, heapwright::heap<small>>> numbers({1, 2, 3}, heap);
  void* const p = local.allocate(100);
  const bool is_local = local.owns(p) && !heap.owns(p);
  local.deallocate(p);
  return is_local && heap.statistics().in_use > 0 && local.statistics().in_use == 0;
}

/// Without the probe they do nothing, and say so.
bool live_works() {
  heapwright::live::mark("single header");
  heapwright::metered<heapwright::upstream_malloc, heapwright::live::meter_report> textures;
  return !textures.report().open("textures");
}

}  // namespace

int main() {
  if (!pmr_works()) return std::puts("a heap does not serve std::pmr"), 1;
  if (!kit_works()) return std::puts("the kit does not work"), 1;
  if (!heaps_work()) return std::puts("the heaps do not work"), 1;
  if (!live_works()) return std::puts("what tells the live view does not work"), 1;
}
