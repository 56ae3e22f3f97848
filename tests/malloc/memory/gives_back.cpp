// Freed memory returns to the system. 200 MiB of small blocks are allocated and freed; then the
// program goes on a little, in one of several ways, for a good second. After that no more may be
// resident than before, plus a tenth.
//
//   gives_back mixed      many sizes are allocated and freed
//   gives_back one_size   one block is allocated and freed in a loop
//   gives_back large      blocks of 1 MiB
//   gives_back trim       malloc_trim(0), at once
//   gives_back huge       as one_size, but the memory was one block of 200 MiB
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <malloc.h>
#include <time.h>

#include "../support/opaque.h"
#include "../support/random.hpp"
#include "../support/resident.h"

namespace {

constexpr std::size_t total = 200 << 20;
constexpr std::size_t allowed = 20 << 20;

struct node {
  node* next;
};

void use_and_free(std::size_t bytes) {
  test::random random(1);
  node* all = nullptr;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t size = sizeof(node) + random.size(11);
    auto* const n = static_cast<node*>(opaque(std::malloc(size)));
    REQUIRE(n != nullptr);
    n->next = all;
    all = n;
    done += size;
  }
  REQUIRE(resident_bytes() > bytes);
  while (all != nullptr) {
    node* const next = all->next;
    std::free(all);
    all = next;
  }
}

void touch_and_free(std::size_t size) {
  auto* const p = static_cast<char*>(opaque(std::malloc(size)));
  REQUIRE(p != nullptr);
  for (std::size_t i = 0; i < size; i += 4096) p[i] = 1;
  std::free(opaque(p));
}

/// Light activity: a few operations, then a pause of a millisecond, for 1.2 seconds.
template <class F>
void go_on(F activity) {
  for (int i = 0; i < 1200; ++i) {
    for (int k = 0; k < 100; ++k) activity();
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  const std::string how = argv[1];
  const std::size_t before = resident_bytes();
  if (how == "huge") {
    touch_and_free(total);
  } else {
    use_and_free(total);
  }
  if (how == "mixed") {
    test::random random(2);
    go_on([&] { touch_and_free(random.size(14)); });
  } else if (how == "one_size" || how == "huge") {
    go_on([] { touch_and_free(100); });
  } else if (how == "large") {
    go_on([] { touch_and_free(1 << 20); });
  } else if (how == "trim") {
    REQUIRE(malloc_trim(0) == 1);
  }
  const std::size_t after = resident_bytes();
  std::fprintf(stderr, "%s: before %zu KiB, after %zu KiB\n", how.c_str(), before / 1024, after / 1024);
  REQUIRE(after < before + allowed);
}
