// Best-fit heaps that threads share, beside the process's malloc: `size` threads at once.
//  S0 threads, own blocks      each thread replaces a random one of 256 blocks of its own, of 16 to
//                              512 bytes
//  S0 threads, others' blocks  the 256 blocks per thread are everybody's, so that most are freed by
//                              another thread
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "memories.hpp"
#include "rows.hpp"
#include "timing.hpp"

namespace bench {
namespace {

constexpr int operations = 100'000;  // of each thread
constexpr std::size_t blocks_per_thread = 256;

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) noexcept : state_(seed * 2 + 1) {}
  std::uint32_t next() noexcept {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 33);
  }

 private:
  std::uint64_t state_;
};

template <class A>
void* some_block(A& memory, random_numbers& random) {
  auto* const p = static_cast<std::byte*>(memory.allocate(16 + random.next() % 497));
  if (p == nullptr) std::abort();
  *p = std::byte{1};
  return p;
}

template <class A>
void replace_own(A& memory, std::uint64_t seed) {
  random_numbers random(seed);
  std::vector<void*> blocks(blocks_per_thread);
  for (int i = 0; i < operations; ++i) {
    void*& p = blocks[random.next() % blocks_per_thread];
    memory.deallocate(p);
    p = some_block(memory, random);
  }
  for (void* const p : blocks) memory.deallocate(p);
}

using shared_blocks = std::vector<std::atomic<void*>>;

template <class A>
void replace_any(A& memory, std::uint64_t seed, shared_blocks& blocks) {
  random_numbers random(seed);
  for (int i = 0; i < operations; ++i)
    memory.deallocate(
        blocks[random.next() % blocks.size()].exchange(some_block(memory, random), std::memory_order_acq_rel));
}

/// Seconds from the first thread's begin until the last one's end. All begin together.
template <class F>
double seconds_of_threads(std::int64_t n, F&& work) {
  using clock = std::chrono::steady_clock;
  std::barrier all(n);
  std::vector<clock::time_point> begin(static_cast<std::size_t>(n)), end(begin);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < begin.size(); ++t) {
    threads.emplace_back([&, t] {
      all.arrive_and_wait();
      begin[t] = clock::now();
      work(t);
      end[t] = clock::now();
    });
  }
  for (std::thread& t : threads) t.join();
  return std::chrono::duration<double>(*std::ranges::max_element(end) - *std::ranges::min_element(begin)).count();
}

template <class A>
void rows_of_threads(const char* memory) {
  for (const std::int64_t n : {1, 2, 8}) {
    add(
        "S0", "threads, own blocks", memory, n, 11,
        [] {
          return [a = std::make_shared<A>()](std::int64_t size) {
            return seconds_of_threads(size, [&](std::uint64_t t) { replace_own(*a, t); });
          };
        },
        operations);
    add(
        "S0", "threads, others' blocks", memory, n, 11,
        [] {
          return [a = std::make_shared<A>()](std::int64_t size) {
            shared_blocks blocks(blocks_per_thread * static_cast<std::size_t>(size));
            const double time = seconds_of_threads(size, [&](std::uint64_t t) { replace_any(*a, t, blocks); });
            for (auto& p : blocks) a->deallocate(p.load());
            return time;
          };
        },
        operations);
  }
}

struct malloc_of_any {
  void* allocate(std::size_t size) { return std::malloc(size); }
  void deallocate(void* p) { std::free(p); }
};

template <class A>
struct in_pages : reserved, A {
  in_pages() : A(bytes()) {}
};

constexpr heapwright::best_fit_plan deferred{.merging = heapwright::merge::deferred};

}  // namespace

void add_threads() {
  rows_of_threads<malloc_of_any>("malloc");
  rows_of_threads<in_pages<heapwright::concurrent_best_fit<>>>("best_fit shards");
  rows_of_threads<in_pages<heapwright::concurrent_best_fit<deferred>>>("best_fit shards, deferred");
  rows_of_threads<in_pages<heapwright::shared<heapwright::best_fit<>>>>("best_fit, one lock");
}

}  // namespace bench
