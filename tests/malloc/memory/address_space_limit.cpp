// A process that may have only so much address space (RLIMIT_AS) gets null and ENOMEM, or
// bad_alloc, where it runs out, and can go on when it has freed something. The same with several
// threads, and with threads that end and begin meanwhile.
//
//   address_space_limit single | threads | new_threads
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../support/opaque.h"
#include "../support/pattern.h"
#include "../support/random.hpp"
#include "../support/resident.h"

namespace {

constexpr std::size_t room = 96 << 20;

void limit_address_space() {
  const rlimit limit{address_space_bytes() + room, RLIM_INFINITY};
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
}

struct node {
  node* next;
  std::size_t size;
};

/// Allocates until nothing more is to be had; returns all of it.
node* exhaust(std::uint64_t seed, unsigned max_exponent) {
  test::random random(seed);
  node* all = nullptr;
  for (;;) {
    const std::size_t size = sizeof(node) + random.size(max_exponent);
    errno = 0;
    auto* const n = static_cast<node*>(opaque(std::malloc(size)));
    if (n == nullptr) {
      REQUIRE(errno == ENOMEM);
      return all;
    }
    pattern_fill(n + 1, size - sizeof(node), size, 0);
    *n = {all, size};
    all = n;
  }
}

void release(node* n) {
  while (n != nullptr) {
    node* const next = n->next;
    REQUIRE(pattern_holds(n + 1, n->size - sizeof(node), n->size));
    std::free(n);
    n = next;
  }
}

void must_have(std::size_t size) {
  void* const p = opaque(std::malloc(size));
  REQUIRE(p != nullptr);
  pattern_fill(p, size, 1, 0);
  std::free(p);
}

void single() {
  for (const unsigned max_exponent : {8U, 14U, 20U, 12U}) {
    node* const all = exhaust(max_exponent, max_exponent);
    bool thrown = false;
    try {
      ::operator delete(opaque(::operator new(opaque_size(room))));
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    REQUIRE(thrown);
    REQUIRE(::operator new(opaque_size(room), std::nothrow) == nullptr);
    release(all);
    must_have(room / 4);
  }
}

void* exhaust_and_release(void* seed) {
  for (std::uint64_t i = 0; i < 5; ++i) release(exhaust(reinterpret_cast<std::uintptr_t>(seed) * 100 + i, 15));
  return nullptr;
}

void with_threads() {
  pthread_t threads[4];
  pthread_attr_t small_stack;
  pthread_attr_init(&small_stack);
  pthread_attr_setstacksize(&small_stack, 128 << 10);
  for (std::uintptr_t t = 0; t < 4; ++t) {
    REQUIRE(pthread_create(&threads[t], &small_stack, exhaust_and_release, reinterpret_cast<void*>(t + 1)) == 0);
  }
  for (pthread_t t : threads) pthread_join(t, nullptr);
  must_have(room / 4);
}

void* allocate_a_little(void*) {
  for (std::size_t size = 1; size < 20'000; size *= 3) std::free(opaque(std::malloc(size)));
  return nullptr;
}

/// Threads that begin while nothing is left but room for their stacks have no memory for a cache of
/// their own.
void with_new_threads() {
  constexpr std::size_t stack = 64 << 10;
  pthread_attr_t small_stack;
  pthread_attr_init(&small_stack);
  pthread_attr_setstacksize(&small_stack, stack);
  void* const kept_for_stacks = mmap(nullptr, 2 * stack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  node* const all = exhaust(1, 10);
  munmap(kept_for_stacks, 2 * stack);
  int begun = 0;
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &small_stack, allocate_a_little, nullptr) != 0) continue;
    ++begun;
    pthread_join(thread, nullptr);
  }
  REQUIRE(begun > 0);
  std::printf("%d threads began\n", begun);
  release(all);
  must_have(room / 4);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, &small_stack, exhaust_and_release, nullptr) == 0);
  pthread_join(thread, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  const std::string how = argv[1];
  limit_address_space();
  if (how == "single") single();
  if (how == "threads") with_threads();
  if (how == "new_threads") with_new_threads();
}
