// Threads replace each other's blocks, of which so many are live that the probe thins their
// samples. What it says of stacks must be what it says of live samples, to the byte: each sample
// that was taken was freed once, dropped once, or is there.
//
//   thinning THREADS
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "own_segment.hpp"

namespace {

constexpr std::size_t blocks = 20'000;

std::array<std::atomic<void*>, blocks> all{};
std::atomic<bool> is_enough{false};

template <class Until>
void replace_blocks(std::uint64_t seed, Until is_done) {
  std::uint64_t state = seed;
  while (!is_done()) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const std::size_t at = (state >> 33) % blocks, size = 16 + (state >> 20) % 100'000;
    std::free(all[at].exchange(std::malloc(size)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 4;
  const probe_test::own_segment segment;
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t)
    threads.emplace_back([t] { replace_blocks(static_cast<std::uint64_t>(t) + 1, [] { return is_enough.load(); }); });
  // Finer than the program's processor time allows: many samples are live soon.
  constexpr std::uint64_t enough = 5'000;
  while (!is_enough) {
    segment.header().interval.store(4096 | heapwright::segment::interval_adapts);
    std::this_thread::yield();
    is_enough = segment.read().thinned_samples >= enough;
  }
  for (std::thread& t : threads) t.join();
  // The others take samples while the system keeps the thread that thins from running. One thread
  // alone thins what they have left.
  segment.header().interval.store(4096 | heapwright::segment::interval_adapts);
  replace_blocks(99, [left = 5 * blocks]() mutable { return left-- == 0; });
  const probe_test::figures seen = segment.read();
  std::printf("%d threads: %ju samples thinned, %ju live, %ju lost\n", n,
              static_cast<std::uintmax_t>(seen.thinned_samples), static_cast<std::uintmax_t>(seen.sample_records),
              static_cast<std::uintmax_t>(segment.header().lost_samples.load()));
  if (seen.live_samples != seen.sample_records) return std::puts("samples were lost, or counted twice"), 1;
  if (seen.live_of_stacks != seen.live_of_samples) return std::puts("stacks and samples differ"), 1;
  if (seen.sample_records > 3000) return std::puts("there are more live samples than the filter is made for"), 1;
  return 0;
}
