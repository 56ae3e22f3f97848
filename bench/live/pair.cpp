// `probe_pair THREADS` prints the nanoseconds that one pair of malloc(64) and free takes a
// processor, with so many threads at it at once, each on its own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <time.h>

namespace {

double nanoseconds_per_pair() {
  constexpr int pairs = 5'000'000;
  const auto processor_time = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
  };
  const double begin = processor_time();
  for (int i = 0; i < pairs; ++i) {
    void* p = std::malloc(64);
    asm volatile("" : "+r"(p) : : "memory");
    std::free(p);
  }
  return (processor_time() - begin) / pairs;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1;
  if (n < 1) return 2;
  if (n == 1) {  // libc's malloc is another one for programs with one thread
    std::printf("%.3f\n", nanoseconds_per_pair());
    return 0;
  }
  std::vector<double> times(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  for (auto& t : times) threads.emplace_back([&t] { t = nanoseconds_per_pair(); });
  for (auto& t : threads) t.join();
  std::sort(times.begin(), times.end());
  std::printf("%.3f\n", times[times.size() / 2]);
}
