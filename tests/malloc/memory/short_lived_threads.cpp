// Ten thousand threads, one after another. Each allocates about 1 MiB in small blocks of many sizes
// and leaves half of them for the next thread to free. What a thread kept for itself must be there
// for others when it has ended, so memory stays level.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <pthread.h>

#include "../support/opaque.h"
#include "../support/random.hpp"
#include "../support/resident.h"

namespace {

constexpr int thread_count = 10'000;
constexpr std::size_t bytes_each = 1 << 20;
constexpr std::size_t allowed_growth = 4 << 20;

struct leftovers {
  void* block[20'000];
  std::size_t count = 0;
  std::uint64_t seed = 0;
};
leftovers left;  // by the thread before

void* one_thread(void*) {
  static leftovers mine;
  mine.count = 0;
  test::random random(++left.seed);
  for (std::size_t bytes = 0; bytes < bytes_each && mine.count < 20'000;) {
    const std::size_t size = random.size(13);
    void* const p = opaque(std::malloc(size));
    REQUIRE(p != nullptr);
    static_cast<volatile char*>(p)[size / 2] = 1;
    mine.block[mine.count++] = p;
    bytes += size;
  }
  for (std::size_t i = 0; i < left.count; ++i) std::free(left.block[i]);
  left.count = 0;
  for (std::size_t i = 0; i < mine.count; ++i) {
    if (i % 2 == 0) {
      std::free(mine.block[i]);
    } else {
      left.block[left.count++] = mine.block[i];
    }
  }
  return nullptr;
}

}  // namespace

int main() {
  std::size_t warm = 0;
  std::size_t peak = 0;
  for (int i = 0; i < thread_count; ++i) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, nullptr, one_thread, nullptr) == 0);
    pthread_join(thread, nullptr);
    if (i % 500 != 499) continue;
    const std::size_t now = resident_bytes();
    if (i == 999) warm = now;
    peak = now > peak ? now : peak;
  }
  std::fprintf(stderr, "resident after 1000 threads %zu KiB, at most %zu KiB\n", warm / 1024, peak / 1024);
  REQUIRE(peak < warm + allowed_growth);
}
