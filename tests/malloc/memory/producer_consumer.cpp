// One thread allocates, another frees: ten million blocks through a queue. Blocks must find their
// way back to the thread that allocates; an allocator that lets them pile up where they were freed
// grows with every block.
//
//   producer_consumer [BLOCKS]
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "../support/opaque.h"
#include "../support/random.hpp"
#include "../support/resident.h"

namespace {

constexpr std::size_t queue_length = 4096;
constexpr std::size_t allowed = 16 << 20;

struct queue {
  std::atomic<void*> cell[queue_length]{};

  void put(std::size_t i, void* p) {
    while (cell[i % queue_length].load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
    cell[i % queue_length].store(p, std::memory_order_release);
  }

  void* take(std::size_t i) {
    void* p = nullptr;
    while ((p = cell[i % queue_length].load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
    cell[i % queue_length].store(nullptr, std::memory_order_release);
    return p;
  }
};
queue passing;

}  // namespace

int main(int argc, char** argv) {
  const std::size_t blocks = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
  const std::size_t before = resident_bytes();
  std::thread consumer([=] {
    for (std::size_t i = 0; i < blocks; ++i) std::free(passing.take(i));
  });
  test::random random(1);
  std::size_t peak = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t size = 16 + random.below(500);
    auto* const p = static_cast<volatile char*>(opaque(std::malloc(size)));
    REQUIRE(p != nullptr);
    p[0] = 1;
    p[size - 1] = 1;
    passing.put(i, const_cast<char*>(p));
    if (i % 100'000 == 0) peak = std::max(peak, resident_bytes());
  }
  consumer.join();
  std::fprintf(stderr, "grew by %zu KiB at most\n", (peak - before) / 1024);
  REQUIRE(peak < before + allowed);
}
