// Random operations over every entry of malloc, on several threads that hand blocks to each other,
// with every block's contents checked before it is freed or after it is moved.
//
//   stress THREADS OPERATIONS [SEED]       the same arguments give each thread the same operations
//   STRESS_MAY_FAIL=1                      a null result is accepted (memory is limited, or made to
//                                          fail)
//
// On a mismatch the seed is printed; exit code 1.
#include <cstdio>
#include <cstdlib>

#include <pthread.h>

#include "operations.hpp"

namespace {

constexpr unsigned max_threads = 64;

struct job {
  std::uint64_t seed = 0;
  std::size_t operations = 0;
  bool may_fail = false;
  test::exchange* shared = nullptr;
  bool right = true;
  bool started = false;
  pthread_t thread{};
};

void* work(void* p) {
  job& mine = *static_cast<job*>(p);
  test::operations all(mine.seed, *mine.shared, mine.may_fail);
  mine.right = all.run(mine.operations);
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || std::strtoul(argv[1], nullptr, 10) - 1 >= max_threads)
    return std::fprintf(stderr, "usage: stress THREADS OPERATIONS [SEED]\n"), 2;
  const auto threads = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  const std::size_t operations = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const bool may_fail = std::getenv("STRESS_MAY_FAIL") != nullptr;

  test::exchange shared;
  job jobs[max_threads];
  for (unsigned t = 0; t < threads; ++t) jobs[t] = {seed * 1000 + t, operations, may_fail, &shared};
  // No std::thread: where memory fails on purpose, an exception could not even be thrown.
  for (unsigned t = 1; t < threads; ++t) {
    jobs[t].started = pthread_create(&jobs[t].thread, nullptr, work, &jobs[t]) == 0;
    if (!jobs[t].started && !may_fail) return std::perror("stress: pthread_create"), 1;
  }
  work(&jobs[0]);
  bool right = jobs[0].right;
  for (unsigned t = 1; t < threads; ++t) {
    if (jobs[t].started) pthread_join(jobs[t].thread, nullptr);
    right = right && jobs[t].right;
  }
  right = shared.drain() && right;
  if (!right)
    std::fprintf(stderr, "stress %u %zu %llu: FAILED\n", threads, operations, static_cast<unsigned long long>(seed));
  return right ? 0 : 1;
}
