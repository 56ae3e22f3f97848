// The fast paths alone, beside the loop that one would write by hand.
//  S3 pairs         n blocks of 24 bytes, then all of them back; with n = 1 the two are next to
//                   each other
//  S1 allocations   n blocks of 32 bytes, then all of them back at once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <memory_resource>
#include <vector>

#include <boost/pool/pool.hpp>

#include "memories.hpp"
#include "rows.hpp"
#include "timing.hpp"

namespace bench {
namespace {

constexpr int blocks_per_iteration = 10'000;

template <class A>
void one_by_one(A& memory) {
  for (int done = 0; done < blocks_per_iteration; ++done) {
    void* p = memory.allocate();
    benchmark::DoNotOptimize(p);
    memory.deallocate(p);
  }
}

template <class A>
void pairs(const char* memory) {
  for (const std::int64_t n : {1, 10, 100, 1000}) {
    add(
        "S3", "pairs", memory, n, 51,
        [] {
          return [a = std::make_shared<A>(), blocks = std::vector<void*>(1000)](std::int64_t size) mutable {
            return seconds([&] {
              // Variables of the loop's own: what is captured would be read anew in each round, or
              // not, as the allocator's types have it.
              A& pool = *a;
              void** const held = blocks.data();
              const std::int64_t n_blocks = size;
              if (n_blocks == 1) return one_by_one(pool);
              for (std::int64_t done = 0; done < blocks_per_iteration; done += n_blocks) {
                for (std::int64_t i = 0; i < n_blocks; ++i) {
                  held[i] = pool.allocate();
                  benchmark::DoNotOptimize(held[i]);
                }
                for (std::int64_t i = 0; i < n_blocks; ++i) pool.deallocate(held[i]);
              }
            });
          };
        },
        blocks_per_iteration);
  }
}

struct malloc_of_24 {
  void* allocate() { return std::malloc(24); }
  void deallocate(void* p) { std::free(p); }
};

struct pool_of_24 : heapwright::pool<> {
  pool_of_24() : pool(heapwright::layout{24, 8}) {}
};

template <class Resource>
struct resource_of_24 : Resource {
  void* allocate() { return Resource::allocate(24, 8); }
  void deallocate(void* p) { Resource::deallocate(p, 24, 8); }
};

struct boost_pool_of_24 {
  boost::pool<> memory{24};
  void* allocate() { return memory.malloc(); }
  void deallocate(void* p) { memory.free(p); }
};

template <class A>
void allocations(const char* memory) {
  add(
      "S1", "allocations", memory, 1000, 51,
      [] {
        return [a = std::make_shared<A>()](std::int64_t size) {
          return seconds([&] {
            for (std::int64_t done = 0; done < blocks_per_iteration; done += size) {
              for (std::int64_t i = 0; i < size; ++i) benchmark::DoNotOptimize(a->allocate());
              a->restart();
            }
          });
        };
      },
      blocks_per_iteration);
}

struct malloc_of_32 {
  std::vector<void*> blocks = std::vector<void*>(1000);
  std::size_t count = 0;
  void* allocate() { return blocks[count++] = std::malloc(32); }
  void restart() {
    while (count != 0) std::free(blocks[--count]);
  }
};

struct arena_of_32 : arena_in_pages<heapwright::take_back::latest> {
  void* allocate() { return arena::allocate({32, 8}); }
  void restart() { reset(); }
};

/// A bump allocator as one writes it by hand.
struct hand_written_bump : reserved {
  std::byte* next = begin;
  std::byte* const end = begin + range.size;
  void* allocate() { return end - next < 32 ? nullptr : std::exchange(next, next + 32); }
  void restart() { next = begin; }
};

struct monotonic_of_32 : std::pmr::monotonic_buffer_resource {
  void* allocate() { return std::pmr::monotonic_buffer_resource::allocate(32, 8); }
  void restart() { release(); }
};

}  // namespace

void add_loops() {
  pairs<malloc_of_24>("malloc");
  pairs<pool_of_24>("pool");
  pairs<hand_written_list<24>>("hand-written");
  pairs<boost_pool_of_24>("boost pool");
  pairs<resource_of_24<std::pmr::unsynchronized_pool_resource>>("pmr unsynchronized_pool");
  pairs<resource_of_24<boost::container::pmr::unsynchronized_pool_resource>>("boost pmr pool");
  allocations<malloc_of_32>("malloc");
  allocations<arena_of_32>("arena");
  allocations<hand_written_bump>("hand-written");
  allocations<monotonic_of_32>("pmr monotonic");
}

}  // namespace bench
