// Threads by the dozen, short ones by the hundred, which allocate, pass blocks on to each other,
// reallocate and end, while others fork. Then the probe must have counted exactly what was done
// with blocks of one class of sizes that nobody else in the process uses.
//
//   stress SECONDS    exit status 0: the figures fit together
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "own_segment.hpp"

namespace {

using heapwright::segment::size_scale;

constexpr std::size_t size = 5'500;  // libc and libstdc++ ask for nothing like it
std::atomic<std::uint64_t> allocated{0}, freed{0};
std::atomic<bool> enough{false};

std::array<std::atomic<void*>, 256> shelf{};

void release(void* p) {
  if (p == nullptr) return;
  std::free(p);
  ++freed;
}

void work(unsigned seed, int operations) {
  std::minstd_rand random(seed);
  for (int i = 0; i < operations && !enough; ++i) {
    void* p = std::malloc(size);
    ++allocated;
    if (random() % 4 == 0) {
      p = std::realloc(p, size + 1);
      ++freed, ++allocated;
    }
    release(shelf[random() % shelf.size()].exchange(p));
  }
}

void live_long(unsigned seed) {
  while (!enough) work(seed++, 1000);
}

void many_short_lives(unsigned seed) {
  while (!enough) {
    std::vector<std::thread> some;
    for (int i = 0; i < 20; ++i) some.emplace_back(work, seed++, 50);
    for (auto& t : some) t.join();
  }
}

/// The child does something with malloc and compares its own sums.
void fork_now_and_then() {
  while (!enough) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0; i < 100; ++i) std::free(std::malloc(static_cast<std::size_t>(i)));
      const probe_test::figures f = probe_test::own_segment().read();
      std::_Exit(f.net() == f.live ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) {
      std::fprintf(stderr, "stress: a child ended with status %d\n", status);
      std::_Exit(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int differences = 0;

void expect(const char* what, std::uint64_t is, std::uint64_t should_be) {
  if (is == should_be) return;
  std::fprintf(stderr, "stress: %s: %llu, and not %llu\n", what, static_cast<unsigned long long>(is),
               static_cast<unsigned long long>(should_be));
  ++differences;
}

/// An estimate, which may differ by five standard deviations. A slow machine takes few samples.
/// `interval`: bytes. Of paths that allocate most one sample stands for up to eight.
void expect_about(const char* what, std::uint64_t is, std::uint64_t should_be, std::uint64_t interval) {
  const auto blocks = static_cast<double>(should_be);
  const double deviation = std::sqrt(blocks * 8 * static_cast<double>(interval) / static_cast<double>(size));
  if (std::abs(static_cast<double>(is) - blocks) > 5 * deviation) expect(what, is, should_be);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  {
    std::vector<std::thread> all;
    for (unsigned i = 0; i < 4; ++i) all.emplace_back(live_long, i * 1000);
    for (unsigned i = 0; i < 2; ++i) all.emplace_back(many_short_lives, 100'000 + i * 100'000);
    all.emplace_back(fork_now_and_then);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    enough = true;
    for (auto& t : all) t.join();
  }
  for (auto& p : shelf) release(p.exchange(nullptr));

  const probe_test::own_segment segment;
  const probe_test::figures f = segment.read();
  const unsigned first = size_scale::index(size), last = size_scale::index(size + 100);
  std::uint64_t allocations = 0, frees = 0;
  for (unsigned c = first; c <= last; ++c) {
    allocations += f.classes[c].allocations;
    frees += f.classes[c].frees;
  }
  if (segment.is_of_samples()) {
    const std::uint64_t interval = heapwright::segment::unseen_interval(segment.header());
    expect_about("allocations", allocations, allocated, interval);
    expect_about("frees", frees, freed, interval);
    expect("live bytes by class and by stack", f.net(), f.live_of_stacks);
  } else {
    expect("allocations", allocations, allocated);
    expect("frees", frees, freed);
  }
  expect("what the threads have published, and what they have not", f.live, f.net());
  expect("live bytes of the samples", f.live_of_samples, f.live_of_stacks);
  std::printf("%llu allocations, %llu threads\n", static_cast<unsigned long long>(allocations),
              static_cast<unsigned long long>(segment.header().threads_ever.load()));
  return differences == 0 ? 0 : 1;
}
