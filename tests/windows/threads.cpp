// Threads that allocate, free each other's blocks, and end.
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "redirected.hpp"

namespace {

struct block {
  unsigned char* p;
  std::size_t size;
  unsigned char value;
};

constexpr unsigned places = 512;
std::atomic<block*> shared[places];

bool is_intact(const block& b) {
  for (std::size_t i = 0; i < b.size; i += 1 + b.size / 64) {
    if (b.p[i] != b.value) return false;
  }
  return b.size == 0 || b.p[b.size - 1] == b.value;
}

void free_block(const block* b) {
  if (b == nullptr) return;
  CHECK(is_intact(*b));
  std::free(b->p);
  delete b;
}

/// Puts blocks where others take them.
void work(unsigned seed, int rounds) {
  std::mt19937 random(seed);
  for (int i = 0; i < rounds; ++i) {
    const std::size_t size = random() % 100 == 0 ? random() % 400'000 : random() % 1000;
    auto* const fresh = new block{static_cast<unsigned char*>(std::malloc(size)), size, static_cast<unsigned char>(i)};
    CHECK(fresh->p != nullptr);
    std::memset(fresh->p, fresh->value, size);
    if (block* const b = shared[random() % places].exchange(fresh)) {
      const std::size_t longer = b->size + random() % 100;
      b->p = static_cast<unsigned char*>(std::realloc(b->p, longer));
      free_block(b);
    }
  }
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) threads.emplace_back(work, t, 40'000);
  for (std::thread& t : threads) t.join();
  // What a thread has kept serves the next.
  const unsigned long long before = in_use();
  for (unsigned t = 0; t < 500; ++t) std::thread(work, t, 20).join();
  for (auto& place : shared) free_block(place.exchange(nullptr));
  CHECK(in_use() < before);
  if (failures == 0) std::puts("all hold");
  return failures == 0 ? 0 : 1;
}
