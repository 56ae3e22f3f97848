// Many threads at once, of which never more than a few hold a block: a thread asks for a permit
// before it allocates, and gives the permit back after the block is freed, by itself or by another
// thread. So what may have been live at one moment is known, however the threads run, and no
// recorded peak may exceed it.
//
//   handovers THREADS SECONDS [changing]    exit status 0: none does. changing: the interval
//                                           changes, and the peaks begin again, meanwhile.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include <malloc.h>
#include <semaphore.h>

#include "own_segment.hpp"

namespace {

using heapwright::segment::size_scale;

constexpr int permits = 3;
constexpr std::size_t sizes[] = {60'000, 3 << 20};  // of short bands, and beyond all
sem_t free_permits;
std::array<std::atomic<void*>, permits - 1> shelf{};  // so that one permit at least goes round
std::atomic<bool> enough{false};

void release(void* p) {
  if (p == nullptr) return;
  std::free(p);
  sem_post(&free_permits);
}

/// Works for a while, is idle for a while.
void work(unsigned seed) {
  while (!enough) {
    for (unsigned i = 0; i < 50 && !enough; ++i) {
      seed = seed * 1664525 + 1013904223;
      sem_wait(&free_permits);
      if (enough) return;
      void* const p = std::malloc(sizes[seed >> 20 & 1]);
      // Into the hands of another thread, or freed here.
      release((seed >> 21 & 1) != 0 ? shelf[seed >> 22 & 1].exchange(p) : p);
      if ((seed >> 24 & 3) == 0) release(shelf[seed >> 26 & 1].exchange(nullptr));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(seed >> 22));
  }
}

int violations = 0;

void expect_at_most(const char* what, std::uint64_t is, std::uint64_t most) {
  if (is <= most) return;
  std::fprintf(stderr, "handovers: %s: %llu recorded, %llu at most were live\n", what,
               static_cast<unsigned long long>(is), static_cast<unsigned long long>(most));
  ++violations;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 40;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  const bool is_changing = argc > 3 && std::string_view(argv[3]) == "changing";
  sem_init(&free_permits, 0, permits);
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back(work, static_cast<unsigned>(i) * 7919);

  const probe_test::own_segment segment;
  constexpr std::uint64_t grain = 16 * 1024,
                          of_others = 512 * 1024;  // what C++'s runtime and the threads themselves hold
  const auto check = [&] {
    const auto& h = segment.header();
    const std::uint64_t block = sizes[1] + 8192;
    const auto live_threads = static_cast<std::uint64_t>(threads) + 1;
    expect_at_most("the peak of the process", h.peak, permits * block + of_others + live_threads * grain);
    for (const std::size_t size : sizes)
      expect_at_most("the peak of a size class", h.class_peak[size_scale::index(size + 16)], permits * (size + 8192));
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (unsigned round = 0; std::chrono::steady_clock::now() < end && violations == 0; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    check();
    if (!is_changing) continue;
    constexpr std::uint64_t intervals[] = {1, 512 * 1024, 4096, 1, 0};
    segment.header().interval.store(intervals[round % std::size(intervals)]);
    if (round % 7 == 0) segment.reset_peak();
  }
  enough = true;
  for (int i = 0; i < threads; ++i) sem_post(&free_permits);
  for (auto& t : all) t.join();
  check();
  return violations == 0 ? 0 : 1;
}
