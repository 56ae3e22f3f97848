// Node containers in pools: the container's node type need not be known, for each size has its
// pool. What is too large goes to malloc.
#include <heapwright/kit.hpp>

#include <cstdio>
#include <list>
#include <map>

int main() {
  using pools = heapwright::segregate<256, heapwright::bucketed<heapwright::pool<>, 256>, heapwright::upstream_malloc>;
  pools memory;
  std::list<int, heapwright::std_allocator<int, pools>> numbers(memory);
  std::map<int, int, std::less<>, heapwright::std_allocator<std::pair<const int, int>, pools>> index(memory);
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back(i);
    index[i] = 1000 - i;
  }
  numbers.clear();
  std::printf("%zu in the map; the list's pool gave back %zu bytes\n", index.size(), memory.trim());
}
