// fork in a threaded program: threads allocate and free as fast as they can, and hand blocks to
// each other, while the main thread forks. The child has only one of the threads, but must be able
// to free blocks of all of them, to allocate in every size class, to make threads and to fork
// again. Locks held by lost threads, or caches left half changed, show as a child that hangs (its
// alarm ends it) or finds wrong contents.
//
//   fork_threads FORKS
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "../support/opaque.h"
#include "../support/pattern.h"
#include "../support/random.hpp"
#include "../support/require.h"

namespace {

constexpr unsigned child_seconds = 60;
constexpr std::size_t cell_count = 512;

struct passed_block {
  std::size_t size;
  std::uint64_t seed;
};

std::atomic<passed_block*> cells[cell_count];
std::atomic<bool> done{false};

passed_block* make(test::random& random) {
  const std::size_t size = sizeof(passed_block) + random.size(random.below(100) == 0 ? 18 : 12);
  auto* const b = static_cast<passed_block*>(opaque(std::malloc(size)));
  REQUIRE(b != nullptr);
  b->size = size;
  b->seed = random.next();
  pattern_fill(b + 1, size - sizeof *b, b->seed, 0);
  return b;
}

void check_and_free(passed_block* b) {
  if (b == nullptr) return;
  REQUIRE(pattern_holds(b + 1, b->size - sizeof *b, b->seed));
  std::free(b);
}

void churn(std::uint64_t seed) {
  test::random random(seed);
  while (!done) check_and_free(cells[random.below(cell_count)].exchange(make(random)));
}

void use_every_class(std::uint64_t seed) {
  test::random random(seed);
  std::vector<passed_block*> mine;
  for (int i = 0; i < 3000; ++i) mine.push_back(make(random));
  for (passed_block* b : mine) check_and_free(b);
}

int status_of(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

[[noreturn]] void live_as_child(std::uint64_t seed, std::vector<passed_block*>& inherited, int generation) {
  ::alarm(child_seconds);
  done = true;  // of this process: its copies of the threads are gone
  for (passed_block* b : inherited) check_and_free(b);
  for (auto& cell : cells) check_and_free(cell.exchange(nullptr));
  use_every_class(seed);
  std::thread first(use_every_class, seed + 1), second(use_every_class, seed + 2);
  first.join();
  second.join();
  if (generation == 1) {
    inherited.clear();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) live_as_child(seed + 3, inherited, 2);
    if (status_of(grandchild) != 0) ::_exit(3);
  }
  ::_exit(0);
}

void fork_repeatedly(std::uint64_t seed, int forks) {
  test::random random(seed);
  std::vector<passed_block*> mine;
  for (int i = 0; i < 500; ++i) mine.push_back(make(random));
  for (int i = 0; i < forks; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) live_as_child(seed + static_cast<std::uint64_t>(i) * 100, mine, 1);
    const int status = status_of(child);
    REQUIRE(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) &&
            "the child came to its end (a lock was lost in fork)");
    REQUIRE(status == 0);
  }
  for (passed_block* b : mine) check_and_free(b);
}

}  // namespace

int main(int argc, char** argv) {
  const int forks = argc > 1 ? std::atoi(argv[1]) : 100;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) threads.emplace_back(churn, t + 1);
  fork_repeatedly(1000, forks);
  // From two threads at once, one of them new: its first act is to fork.
  std::thread other(fork_repeatedly, 2000, forks / 4);
  fork_repeatedly(3000, forks / 4);
  other.join();
  done = true;
  for (std::thread& t : threads) t.join();
  for (auto& cell : cells) check_and_free(cell.exchange(nullptr));
}
