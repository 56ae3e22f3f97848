// S2: N blocks of s bytes, each filled as soon as it is there, then freed in the same order.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <utility>

#include <boost/container/pmr/unsynchronized_pool_resource.hpp>
#include <boost/pool/pool.hpp>

#include "memories.hpp"
#include "rows.hpp"
#include "timing.hpp"

namespace bench {
namespace {

constexpr int repetitions = 20;

template <class A>
double rounds(A& a, int n, std::size_t size) {
  static void* blocks[600];
  return seconds([&] {
    for (int r = 0; r < repetitions; ++r) {
      for (int i = 0; i < n; ++i) {
        blocks[i] = a.allocate(size);
        std::memset(blocks[i], 0xCC, size);
      }
      for (int i = 0; i < n; ++i) a.deallocate(blocks[i], size);
    }
  });
}

struct by_process_malloc {
  explicit by_process_malloc(std::size_t) {}
  void* allocate(std::size_t size) { return std::malloc(size); }
  void deallocate(void* p, std::size_t) { std::free(p); }
};

/// One allocator for all sizes, as malloc is.
struct by_segregated_slabs {
  explicit by_segregated_slabs(std::size_t) {}
  heapwright::segregate<256, heapwright::bucketed<heapwright::slab<>, 256>, heapwright::upstream_malloc> memory;
  void* allocate(std::size_t size) { return memory.allocate({size, 16}); }
  void deallocate(void* p, std::size_t size) { memory.deallocate(p, {size, 16}); }
};

template <class A>
struct of_one_size {
  explicit of_one_size(std::size_t size) : memory(heapwright::layout{size, 16}) {}
  A memory;
  void* allocate(std::size_t) { return memory.allocate(); }
  void deallocate(void* p, std::size_t) { memory.deallocate(p); }
};

template <class R>
struct by_resource {
  explicit by_resource(std::size_t) {}
  R memory;
  void* allocate(std::size_t size) { return memory.allocate(size, 16); }
  void deallocate(void* p, std::size_t size) { memory.deallocate(p, size, 16); }
};

struct by_boost {
  explicit by_boost(std::size_t size) : memory(size) {}
  boost::pool<> memory;
  void* allocate(std::size_t) { return memory.malloc(); }
  void deallocate(void* p, std::size_t) { memory.free(p); }
};

/// What an allocator costs at the least: blocks in a row, the same ones each time.
struct bare_blocks {
  explicit bare_blocks(std::size_t) {}
  std::byte bytes[600 * 0x90];
  std::byte* next = bytes;
  void* allocate(std::size_t size) { return std::exchange(next, next + size); }
  void deallocate(void*, std::size_t size) { next -= size; }
};

template <class A>
void rows(const char* memory) {
  for (const int n : {100, 600}) {
    for (std::size_t size = 0x10; size <= 0x90; size += 0x10) {
      const std::string row = std::to_string(n) + " blocks of";
      add(
          "S2", row, memory, static_cast<std::int64_t>(size), 20'000 / n,
          [n] {
            return [n, a = std::shared_ptr<A>()](std::int64_t s) mutable {
              if (a == nullptr) a = std::make_shared<A>(static_cast<std::size_t>(s));
              return rounds(*a, n, static_cast<std::size_t>(s));
            };
          },
          repetitions);
    }
  }
}

}  // namespace

void add_slabs() {
  rows<by_process_malloc>("malloc");
  rows<of_one_size<heapwright::slab<>>>("slab");
  rows<by_segregated_slabs>("segregated slabs");
  rows<of_one_size<heapwright::pool<>>>("pool");
  rows<bare_blocks>("floor");
  rows<by_resource<std::pmr::unsynchronized_pool_resource>>("pmr unsynchronized_pool");
  rows<by_resource<boost::container::pmr::unsynchronized_pool_resource>>("boost pmr pool");
  rows<by_boost>("boost pool");
}

}  // namespace bench
