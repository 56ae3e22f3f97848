// A heap of one's own, from the installed headers.
#include <heapwright/heap/heap_core.hpp>
#include <heapwright/platform/linux/linux_os.hpp>

constinit heapwright::heap_core<heapwright::default_recipe, heapwright::linux_os> mine;

int main() {
  auto* const cache = mine.open_cache();
  void* const p = mine.allocate_slow(*cache, 100);
  const bool good = p != nullptr && mine.usable_size(p) >= 100;
  if (!cache->push(p)) mine.deallocate_slow(*cache, p);
  mine.close_cache(cache);
  return good ? 0 : 1;
}
