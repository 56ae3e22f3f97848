// How long single mallocs and frees take while another thread is busy too: `latency [OPERATIONS]`
// prints one line of JSON, in nanoseconds.
//
// Every operation is timed with the processor's time stamp counter, which costs some 10 ns itself,
// the same under every allocator. The times go to a histogram that is made beforehand, so that
// measuring allocates nothing. What the machine does with the thread meanwhile (interrupts,
// neighbours) is in the highest times; it is the same for all too, which is why they are compared
// in rounds.
#include "workloads/workload.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

namespace {

using workloads::random_engine;

std::uint64_t ticks() {
#if defined(__x86_64__)
  unsigned id = 0;
  return __builtin_ia32_rdtscp(&id);
#else
  std::uint64_t t = 0;
  asm volatile("isb; mrs %0, cntvct_el0" : "=r"(t));
  return t;
#endif
}

double nanoseconds_per_tick() {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  const std::uint64_t first = ticks();
  while (clock::now() - begin < std::chrono::milliseconds(50)) {
  }
  const std::uint64_t last = ticks();
  return std::chrono::duration<double, std::nano>(clock::now() - begin).count() / static_cast<double>(last - first);
}

/// Sixteen steps to each doubling, so that a time is known to about 6 %.
class histogram {
 public:
  void add(std::uint64_t time) {
    ++counts_[slot(time)];
    ++total_;
    largest_ = std::max(largest_, time);
  }

  [[nodiscard]] std::uint64_t quantile(double q) const {
    auto left = static_cast<std::uint64_t>(q * static_cast<double>(total_));
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (left < counts_[i]) return beginning(i);
      left -= counts_[i];
    }
    return largest_;
  }

  [[nodiscard]] std::uint64_t largest() const { return largest_; }

 private:
  static std::size_t slot(std::uint64_t time) {
    if (time < 16) return time;
    const auto shift = static_cast<unsigned>(std::bit_width(time)) - 5;
    return (shift + 1) * 16 + (time >> shift) - 16;
  }
  static std::uint64_t beginning(std::size_t slot) {
    return slot < 16 ? slot : std::uint64_t{slot % 16 + 16} << (slot / 16 - 1);
  }

  std::array<std::uint64_t, 61 * 16> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t largest_ = 0;
};

/// A working set of blocks of all kinds that drifts: most are replaced soon, some stay, now and
/// then a large part goes at once.
template <class Malloc, class Free>
void churn(unsigned seed, std::uint64_t operations, const std::atomic<bool>& stop, Malloc allocate, Free release) {
  random_engine random(seed);
  std::vector<unsigned char*> held(30'000);
  for (std::uint64_t i = 0; i < operations && !stop; ++i) {
    auto& p = held[random() % (random() % 4 == 0 ? held.size() : held.size() / 16)];
    if (p != nullptr) release(p);
    const std::size_t size = random() % 20'000 == 0 ? 100'000 + random() % 900'000 : workloads::typical_size(random);
    p = workloads::mark(allocate(size), size);
    if (random() % 500'000 != 0) continue;
    for (std::size_t k = 0; k < held.size(); k += 2) {
      if (held[k] != nullptr) release(std::exchange(held[k], nullptr));
    }
  }
  for (auto* q : held) std::free(q);
}

void print(const char* name, const histogram& times, double scale, const char* behind) {
  const auto ns = [scale](std::uint64_t t) { return static_cast<double>(t) * scale; };
  std::printf(R"("%s": {"p50": %.0f, "p99": %.0f, "p99.9": %.0f, "max": %.0f}%s)", name, ns(times.quantile(0.5)),
              ns(times.quantile(0.99)), ns(times.quantile(0.999)), ns(times.largest()), behind);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t operations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 3'000'000;
  const double scale = nanoseconds_per_tick();
  static histogram mallocs, frees;
  std::atomic<bool> done{false};
  const std::atomic<bool> never{false};
  std::thread busy([&] {
    churn(
        2, UINT64_MAX, done, [](std::size_t size) { return std::malloc(size); }, [](void* p) { std::free(p); });
  });
  churn(
      1, operations, never,
      [](std::size_t size) {
        const std::uint64_t begin = ticks();
        void* const p = std::malloc(size);
        mallocs.add(ticks() - begin);
        return p;
      },
      [](void* p) {
        const std::uint64_t begin = ticks();
        std::free(p);
        frees.add(ticks() - begin);
      });
  done = true;
  busy.join();
  std::printf("{");
  print("malloc", mallocs, scale, ", ");
  print("free", frees, scale, "}\n");
}
