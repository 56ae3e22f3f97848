// What threads had is there for others when they have ended: sixteen threads allocate 64 MiB
// together, free all of it and end; then the main thread allocates as much in the same sizes. It
// must get their memory, not the system's.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "../support/opaque.h"
#include "../support/resident.h"

namespace {

constexpr std::size_t total = 64 << 20;
constexpr unsigned thread_count = 16;
constexpr std::size_t allowed_growth = 6 << 20;

struct node {
  node* next;
};

/// So many bytes in blocks of eleven sizes, every page of them written.
node* allocate(std::size_t bytes) {
  node* all = nullptr;
  for (std::size_t done = 0, i = 0; done < bytes; ++i) {
    const std::size_t size = 24U << (i % 11);
    auto* const n = static_cast<node*>(opaque(std::malloc(size)));
    REQUIRE(n != nullptr);
    for (std::size_t at = 4096; at < size; at += 4096) reinterpret_cast<volatile char*>(n)[at] = 1;
    n->next = all;
    all = n;
    done += size;
  }
  return all;
}

void release(node* n) {
  while (n != nullptr) {
    node* const next = n->next;
    std::free(n);
    n = next;
  }
}

}  // namespace

int main() {
  std::vector<node*> held(thread_count);
  const auto in_all_threads = [&](auto work) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < thread_count; ++t) threads.emplace_back([&, t] { work(held[t]); });
    for (std::thread& t : threads) t.join();
  };
  // First all allocate, so that the full 64 MiB are in use at one moment; then a second round has
  // all threads free and end.
  in_all_threads([](node*& n) { n = allocate(total / thread_count); });
  const std::size_t in_use = resident_bytes();
  in_all_threads([](node*& n) { release(n); });
  node* const mine = allocate(total);
  const std::size_t again = resident_bytes();
  std::fprintf(stderr, "in use by threads %zu KiB, the same by the main thread %zu KiB\n", in_use / 1024, again / 1024);
  REQUIRE(in_use > total);
  REQUIRE(again < in_use + allowed_growth);
  release(mine);
}
