// The benchmarks of the kit: `kit_bench --benchmark_filter=S0/list`. script/bench kit runs them
// side by side and makes tables and plots.
//   kit_bench --first MEMORY N SIZE    what the first N blocks of a process cost, see
//                                      print_first_round
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string_view>

#include "rows.hpp"

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--first")
    return bench::print_first_round(argv[2], std::atoi(argv[3]), std::strtoul(argv[4], nullptr, 0)) ? 0 : 2;
  bench::add_containers();
  bench::add_arenas();
  bench::add_slabs();
  bench::add_trees();
  bench::add_loops();
  bench::add_threads();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
