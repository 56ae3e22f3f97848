// An allocator with a meter that the live view shows: "metered<A, live::meter_report>" as
// docs/live.md has it. Prints the meter's own figures.
#include <cstdio>
#include <utility>

#include <heapwright/combine/metered.hpp>
#include <heapwright/live.hpp>
#include <heapwright/source/upstream.hpp>

int main() {
  namespace live = heapwright::live;
  heapwright::metered<heapwright::upstream_malloc, live::meter_report> m;
  void* const before = m.allocate({50, 8});
  const bool is_open = m.report().open("textures");
  void* const p = m.allocate({1000, 16});
  void* const q = m.allocate({200, 64});
  m.deallocate(p, {1000, 16});
  m.deallocate(before, {50, 8});
  (void)m.allocate({SIZE_MAX, 16});  // a failure
  const heapwright::meter& r = m.reading();
  std::printf("%d %llu %llu %llu %llu %zu %zu\n", is_open, static_cast<unsigned long long>(r.allocations),
              static_cast<unsigned long long>(r.deallocations), static_cast<unsigned long long>(r.failures),
              static_cast<unsigned long long>(r.total_bytes), r.in_use, r.peak);
  m.deallocate(q, {200, 64});
  live::mark("at the end");
}
