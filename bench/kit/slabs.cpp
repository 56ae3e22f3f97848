// S2: N blocks of s bytes, each filled as soon as it is there, then freed in the same order: warm,
// and for the first time in a process.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <string_view>
#include <utility>

#include <sys/mman.h>
#include <sys/resource.h>

#include <boost/container/pmr/unsynchronized_pool_resource.hpp>
#include <boost/pool/pool.hpp>

#include "memories.hpp"
#include "rows.hpp"
#include "timing.hpp"

namespace bench {
namespace {

constexpr int repetitions = 20;

template <class A>
double rounds(A& a, int n, std::size_t size, int times = repetitions) {
  static void* blocks[600];
  return seconds([&] {
    for (int r = 0; r < times; ++r) {
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

// --- the first time

/// Linkers define both. The benchmark's own code is in memory before anything is timed: which of
/// its pages a row needs is chance.
extern "C" const char __executable_start, etext;

void bring_code_into_memory() {
#ifdef MADV_POPULATE_READ
  constexpr std::uintptr_t page = 4096;
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(&__executable_start) & ~(page - 1);
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(&etext) + page - 1) & ~(page - 1);
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
#endif
}

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

template <class A>
void print_first(int n, std::size_t size) {
  (void)seconds([] {});
  const long before = page_faults();
  A a(size);
  const double ns = rounds(a, n, size, 1) * 1e9;
  std::printf("%.0f %ld\n", ns, page_faults() - before);
}

}  // namespace

bool print_first_round(std::string_view memory, int n, std::size_t size) {
  if (n < 1 || n > 600) return false;
  bring_code_into_memory();
  if (memory == "malloc") {
    print_first<by_process_malloc>(n, size);
  } else if (memory == "slab") {
    print_first<of_one_size<heapwright::slab<>>>(n, size);
  } else if (memory == "slab on malloc") {
    print_first<of_one_size<heapwright::slab<heapwright::upstream_malloc>>>(n, size);
  } else if (memory == "pool") {
    print_first<of_one_size<heapwright::pool<>>>(n, size);
  } else {
    return false;
  }
  return true;
}

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
