// A program in phases, each of which wants 30 MiB in blocks of another size and frees them all.
// Memory that served one size must serve the next: at its peak the process has at most twice what
// one phase needs.
#include <cstdio>
#include <cstdlib>

#include "../support/opaque.h"
#include "../support/resident.h"

namespace {

constexpr std::size_t per_phase = 30 << 20;
constexpr std::size_t allowed = 2 * per_phase + (8 << 20);

struct node {
  node* next;
};

void run_phase(std::size_t size) {
  node* all = nullptr;
  for (std::size_t bytes = 0; bytes < per_phase; bytes += size) {
    auto* const n = static_cast<node*>(opaque(std::malloc(size)));
    REQUIRE(n != nullptr);
    for (std::size_t at = 0; at < size; at += 4096) reinterpret_cast<volatile char*>(n)[at] = 1;
    n->next = all;
    all = n;
  }
  while (all != nullptr) {
    node* const next = all->next;
    std::free(all);
    all = next;
  }
}

}  // namespace

int main() {
  const std::size_t before = resident_bytes();
  for (int round = 0; round < 3; ++round) {
    for (std::size_t size = 32; size < 4 << 20; size = size * 3 / 2 + 8) run_phase(size);
  }
  std::fprintf(stderr, "before %zu KiB, peak %zu KiB\n", before / 1024, peak_resident_bytes() / 1024);
  REQUIRE(peak_resident_bytes() < before + allowed);
}
