// Allocates and frees the same blocks each time, at two sites, and says what a sampler of one in
// INTERVAL bytes should tell of them: for estimates_test.cpp.
//
//   estimates INTERVAL             the probe samples one in INTERVAL bytes
//   estimates INTERVAL changing    the program has the probe change its interval, from a quarter to
//                                  four times INTERVAL
//
// A line for each site: its name, where its code begins and ends, then for allocations, bytes
// allocated, live blocks and live bytes the true sum and the variance of an unbiased estimate of
// it, in which each block is with probability p and counts 1 / p times.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <optional>
#include <thread>

#include <malloc.h>

#include "own_segment.hpp"

// The linker names the ends of a section that has a C name.
extern "C" {
extern const char __start_site_of_all_sizes[], __stop_site_of_all_sizes[];
extern const char __start_site_of_one_size[], __stop_site_of_one_size[];
}

namespace {

/// Of a sum over blocks of `x` each.
struct estimate {
  double sum = 0, variance = 0;

  void add(double x, double p) {
    sum += x;
    variance += x * x * (1 - p) / p;
  }
  estimate& operator+=(const estimate& o) {
    sum += o.sum;
    variance += o.variance;
    return *this;
  }
};

struct figures {
  estimate allocations, allocated_bytes, live_blocks, live_bytes;

  void print(const char* name, const char* begin, const char* end) const {
    std::printf("%s %p %p", name, static_cast<const void*>(begin), static_cast<const void*>(end));
    for (const estimate& e : {allocations, allocated_bytes, live_blocks, live_bytes})
      std::printf(" %.17g %.17g", e.sum, e.variance);
    std::printf("\n");
  }
};

[[gnu::noinline, gnu::section("site_of_all_sizes")]] void* allocate_any(std::size_t size) {
  void* const p = std::malloc(size);
  asm volatile("" : : "r"(p) : "memory");
  return p;
}

[[gnu::noinline, gnu::section("site_of_one_size")]] void* allocate_equal() {
  void* const p = std::malloc(1000);
  asm volatile("" : : "r"(p) : "memory");
  return p;
}

double interval = 1;
heapwright::segment::segment_header* changed = nullptr;  ///< whose interval changes

/// After every 300th block of a thread. Says whether the next blocks stay: those of one interval in
/// three, so that a weight by another interval than the block's own makes live bytes wrong.
bool change_interval() {
  static thread_local int blocks = 0;
  constexpr double factors[] = {1, 4, 0.25};
  const int phase = ++blocks / 300 % 3;
  if (blocks % 300 == 0) changed->interval.store(static_cast<std::uint64_t>(interval * factors[phase]));
  return phase == 1;
}

/// Counts a block, and frees it if it does not stay.
void count(figures& f, void* block, bool stays) {
  if (changed != nullptr) stays = change_interval();
  const auto bytes = static_cast<double>(malloc_usable_size(block));
  const double p = -std::expm1(-bytes / interval);
  f.allocations.add(1, p);
  f.allocated_bytes.add(bytes, p);
  if (!stays) return std::free(block);
  f.live_blocks.add(1, p);
  f.live_bytes.add(bytes, p);
}

void all_sizes(figures& f) {
  std::uint64_t state = 1;
  const auto below = [&](std::uint64_t n) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::size_t>((state >> 33) % n);
  };
  for (int i = 0; i < 30'000; ++i)
    count(f, allocate_any(16 + (below(50) == 0 ? below(300'000) : below(1'000))), i % 2 == 0);
}

void one_size(figures& f) {
  for (int i = 0; i < 15'000; ++i) count(f, allocate_equal(), i % 2 == 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  interval = std::atof(argv[1]);
  std::optional<probe_test::own_segment> segment;
  if (argc == 3) changed = &segment.emplace().header();
  figures all, equal[2];
  all_sizes(all);
  // On two threads, of which each has a sampler of its own.
  std::thread first(one_size, std::ref(equal[0])), second(one_size, std::ref(equal[1]));
  first.join();
  second.join();
  equal[0].allocations += equal[1].allocations;
  equal[0].allocated_bytes += equal[1].allocated_bytes;
  equal[0].live_blocks += equal[1].live_blocks;
  equal[0].live_bytes += equal[1].live_bytes;
  all.print("all_sizes", __start_site_of_all_sizes, __stop_site_of_all_sizes);
  equal[0].print("one_size", __start_site_of_one_size, __stop_site_of_one_size);
}
