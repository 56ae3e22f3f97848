// `workloads NAME [SCALE]` does one workload and prints its checksum; `workloads --list` names
// them.
#include "workload.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

template <class F>
void for_each_workload(F f) {
  for (const auto group : {workloads::of_blocks(), workloads::of_structures(), workloads::of_threads()}) {
    for (const workloads::workload& w : group) f(w);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  const std::string_view name = argc > 1 ? arguments[1] : "";
  if (name == "--list") {
    for_each_workload([](const auto& w) { std::printf("%-14s %s\n", w.name.data(), w.what.data()); });
    return 0;
  }
  const std::uint64_t scale = argc > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  bool known = false;
  for_each_workload([&](const auto& w) {
    if (w.name != name) return;
    known = true;
    std::printf("%llu\n", static_cast<unsigned long long>(w.run(scale)));
  });
  if (known) {
    // What is in memory at the end is to be what the allocator keeps, not what is left after
    // libraries have taken themselves apart.
    std::fflush(stdout);
    std::_Exit(0);
  }
  std::fprintf(stderr, "usage: workloads NAME [SCALE]; workloads --list names them\n");
  return 2;
}
