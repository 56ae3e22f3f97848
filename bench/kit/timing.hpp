// Registers a benchmark of which only a part is timed: `body(n)` returns the seconds that count,
// for `work` units of work.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

template <class F>
double seconds(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// "SYSTEM/ROW/MEMORY/SIZE". `make()` gives the body, which owns whatever has to outlive one
/// iteration. The counter "ns", per unit of work, is the median of the iterations, which a moment
/// of another program's does not move. Their number is fixed: the library would repeat until what
/// is timed lasts long enough, and what is not timed may last a hundred times longer.
template <class Make>
void add(const std::string& system, const std::string& row, const std::string& memory, std::int64_t size,
         std::int64_t iterations, Make make, int work = 1) {
  benchmark::RegisterBenchmark((system + "/" + row + "/" + memory + "/" + std::to_string(size)).c_str(),
                               [make, size, work](benchmark::State& state) {
                                 auto body = make();
                                 (void)body(size);  // warm
                                 std::vector<double> times;
                                 for (auto _ : state) {
                                   times.push_back(body(size));
                                   state.SetIterationTime(times.back());
                                 }
                                 const auto middle = times.begin() + times.size() / 2;
                                 std::nth_element(times.begin(), middle, times.end());
                                 state.counters["ns"] = *middle * 1e9 / work;
                               })
      ->UseManualTime()
      ->Iterations(std::max<std::int64_t>(iterations, 1))
      ->Unit(benchmark::kNanosecond);
}

}  // namespace bench
