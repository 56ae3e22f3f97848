// Values of the kit, for the pretty printers; gdb_test.py stops at `all_are_there`.
#include <heapwright/heap.hpp>
#include <heapwright/kit.hpp>

extern "C" [[gnu::noinline, gnu::used]] void all_are_there() { asm volatile("" ::: "memory"); }

struct node {
  node* left;
  node* right;
};

int main() {
  heapwright::layout asked(96, 32);
  heapwright::arena<> scratch;
  heapwright::pool<> nodes(heapwright::layout(48, 16));
  heapwright::heap<> own("orders");
  heapwright::stack_arena<256> words;
  heapwright::object_pool<node> orders;
  heapwright::heap_figures figures;
  figures.mapped.set(4096);
  for (int i = 0; i < 100; ++i)
    if (scratch.allocate(100) == nullptr || nodes.allocate({48, 16}) == nullptr) return 1;
  void* const p = nodes.allocate({48, 16});
  nodes.deallocate(p, {48, 16});
  all_are_there();
  return asked.size == 96 && words.stats().in_use == 0 && orders.stats().in_use == 0 ? 0 : 1;
}
