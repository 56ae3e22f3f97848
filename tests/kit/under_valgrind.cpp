// What Valgrind sees of the kit's allocators when they are compiled with HEAPWRIGHT_VALGRIND:
// correct use is silent, each mistake is one error. Run under valgrind; ends with 1 if that is not
// so, with 2 without Valgrind.
#define HEAPWRIGHT_VALGRIND
#include <heapwright/kit.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>

namespace {

using namespace heapwright;

int faults = 0;

void expect_errors(unsigned expected, const char* what, auto&& act) {
  const unsigned before = VALGRIND_COUNT_ERRORS;
  act();
  const unsigned seen = VALGRIND_COUNT_ERRORS - before;
  if (seen == expected) return;
  std::printf("%s: %u errors, not %u\n", what, seen, expected);
  ++faults;
}

/// Copies one byte; Valgrind drops a load whose value goes nowhere.
volatile char last_read = 0;
void read(const void* p, std::size_t at) { last_read = static_cast<const volatile char*>(p)[at]; }

/// A life without mistakes, and then each mistake once.
template <class A>
void lives(const char* name, A& a, layout l) {
  const auto errors = [&](unsigned expected, const char* what, auto&& act) {
    char line[80];
    std::snprintf(line, sizeof line, "%s: %s", name, what);
    expect_errors(expected, line, act);
  };
  errors(0, "correct use", [&] {
    std::vector<void*> blocks;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 500; ++i) {
        blocks.push_back(a.allocate(l));
        std::memset(blocks.back(), i, l.size);
      }
      while (!blocks.empty()) {
        a.deallocate(blocks.back(), l);
        blocks.pop_back();
      }
      if constexpr (can_trim<A>) a.trim();
      if constexpr (has_stats<A>) static_cast<void>(a.stats());
    }
  });
  if constexpr (can_resize<A>) {
    const layout larger{l.size + 100, l.alignment};
    auto* const r = static_cast<char*>(a.allocate(l));
    std::memset(r, 1, l.size);
    errors(0, "resized in place", [&] {
      if (!a.try_resize(r, l, larger)) std::printf("%s: not resized\n", name), ++faults;
      if (r[l.size - 1] != 1) std::printf("%s: contents lost\n", name), ++faults;
      std::memset(r, 2, larger.size);
      if (!a.try_resize(r, larger, l)) std::printf("%s: not made smaller\n", name), ++faults;
      if (r[l.size - 1] != 2) std::printf("%s: contents lost\n", name), ++faults;
    });
    errors(1, "behind what was cut off", [&] { read(r, l.size + 16); });
    a.deallocate(r, l);
  }
  void* const p = a.allocate(l);
  void* const q = a.allocate(l);
  std::memset(p, 1, l.size);
  errors(0, "a block in use", [&] { read(p, l.size - 1); });
  errors(1, "a block that was never written", [&] {
    if (*static_cast<volatile char*>(q) != 0) std::puts("");
  });
  a.deallocate(q, l);
  errors(1, "a read after free", [&] { read(q, l.size / 2); });
  a.deallocate(p, l);
  if constexpr (can_reset<A>) {
    void* const r = a.allocate(l);
    a.reset();
    errors(1, "a read after reset", [&] { read(r, 0); });
  }
}

}  // namespace

int main() {
  if (!RUNNING_ON_VALGRIND) return 2;
  constexpr layout l{48, 16};
  {
    arena<> a;
    lives("arena", a, l);
  }
  {
    pool<> a(l);
    lives("pool", a, l);
  }
  {
    slab<> a(l);
    lives("slab", a, l);
  }
  {
    std::vector<std::byte> memory(MiB);
    best_fit<> a(memory);
    lives("best_fit", a, l);
  }
  {
    std::vector<std::byte> memory(MiB);
    best_fit<best_fit_plan{.merging = merge::deferred}> a(memory);
    lives("best_fit, deferred", a, l);
    void* const p = a.allocate({50, 1});
    expect_errors(1, "best_fit: behind a block", [&] { read(p, 50); });
    a.deallocate(p, {50, 1});
  }
  {
    poisoned<upstream_malloc> a;
    lives("poisoned", a, l);
  }
  {
    poisoned<arena<>> a;
    lives("poisoned arena", a, l);
  }
  {
    concurrent_pool<> a(l);
    lives("concurrent_pool", a, l);
  }
  return faults == 0 ? 0 : 1;
}
