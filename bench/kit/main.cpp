// The benchmarks of the kit: `kit_bench --benchmark_filter=S0/list`. script/bench kit runs them side by side and makes tables and plots.
#include <benchmark/benchmark.h>

#include "rows.hpp"

int main(int argc, char** argv) {
  bench::add_containers();
  bench::add_arenas();
  bench::add_slabs();
  bench::add_trees();
  bench::add_loops();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
