// heapwright::heap as C functions, for src/heap.rs. A heap lies in a block of malloc's. What each
// function promises is said there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <heapwright/heap.hpp>

namespace {

using a_heap = heapwright::heap<HEAPWRIGHT_RECIPE>;

}  // namespace

extern "C" {

/// As Statistics in src/lib.rs.
struct heapwright_rust_statistics {
  std::uint64_t in_use, free, cached, releasable, held;
};

a_heap* heapwright_rust_heap_new(const char* name, std::uint64_t limit) {
  void* const place = std::malloc(sizeof(a_heap));
  return place == nullptr ? nullptr : ::new (place) a_heap(name, limit);
}

void heapwright_rust_heap_delete(a_heap* heap) {
  heap->~a_heap();
  std::free(heap);
}

void* heapwright_rust_allocate(a_heap* heap, std::size_t size, std::size_t alignment) {
  return heap->allocate({size, alignment});
}

void* heapwright_rust_allocate_zeroed(a_heap* heap, std::size_t size) { return heap->allocate_zeroed(size); }

void heapwright_rust_deallocate(a_heap* heap, void* block, std::size_t size, std::size_t alignment) {
  heap->deallocate(block, {size, alignment});
}

void* heapwright_rust_reallocate(a_heap* heap, void* block, std::size_t size) { return heap->reallocate(block, size); }

bool heapwright_rust_owns(const a_heap* heap, const void* p) { return heap->owns(p); }

std::size_t heapwright_rust_trim(a_heap* heap) { return heap->trim(); }

void heapwright_rust_set_limit(a_heap* heap, std::uint64_t bytes) { heap->set_limit(bytes); }

heapwright_rust_statistics heapwright_rust_heap_statistics(a_heap* heap) {
  const heapwright::heap_statistics s = heap->statistics();
  return {.in_use = s.in_use,
          .free = s.mapped - s.in_use,
          .cached = s.in_caches,
          .releasable = s.free_resident,
          .held = s.mapped};
}
}
