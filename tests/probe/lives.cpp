// Programs whose lives take a turn, for lives_test.cpp. What they allocate is of one size, so that
// the test knows it when it sees it.
//
//   lives killed | exec | fork | threads N | together N | stacks DEPTH | commands | without_files
//   | peaks | holders N
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t size = 7'000;

void allocate(int n, bool and_free) {
  for (int i = 0; i < n; ++i) {
    void* volatile p = std::malloc(size);
    if (and_free) std::free(p);
  }
}

constexpr int each = 50;
std::vector<void*> blocks_of_all[16];

void fill(std::vector<void*>* blocks) {
  for (int i = 0; i < each; ++i) {
    blocks->push_back(std::malloc(size));
    blocks->push_back(std::malloc(size));
    std::free(blocks->back());
    blocks->pop_back();
  }
}

/// Threads that are there at the same time and allocate in the same place; the first thread frees
/// half of what they keep.
void work_together(int n) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(fill, &blocks_of_all[i]);
  for (auto& t : threads) t.join();
  for (int i = 0; i < n; ++i) {
    for (int b = 0; b < each / 2; ++b) std::free(blocks_of_all[i][static_cast<std::size_t>(b)]);
  }
}

/// All ways through this tree of calls end in an allocation.
[[gnu::noinline]] void branch(int depth) {
  if (depth == 0) return allocate(1, true);
  branch(depth - 1);
  asm volatile("");
  branch(depth - 1);
  asm volatile("");
}

/// Does as it is told, a letter for a command, and says when it has done it: a(llocates 100),
/// f(rees 100 more that it allocates).
void obey() {
  for (char c = 0; ::read(0, &c, 1) == 1;) {
    allocate(100, c == 'f');
    (void)!::write(1, &c, 1);
  }
}

/// 1000 blocks at once, of this size and then of others; a thread that keeps 500 and ends.
void have_peaks() {
  for (const std::size_t of : {size, 3 * size}) {
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(std::malloc(of));
    for (void* p : blocks) std::free(p);
  }
  std::thread([] { allocate(500, false); }).join();
}

/// The child frees 30 of the 100 blocks that it has from its parent, and keeps 10 more.
void be_forked() {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(std::malloc(size));
  allocate(50, true);
  if (::fork() == 0) {
    for (std::size_t i = 0; i < 30; ++i) std::free(blocks[i]);
    allocate(10, false);
    std::_Exit(0);
  }
  ::wait(nullptr);
}

/// Threads of which one after the other holds 3 MiB. All live on until the last has.
void hold_one_after_the_other(int n) {
  std::mutex lock;
  std::condition_variable changed;
  int turn = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) {
    threads.emplace_back([&, i] {
      std::unique_lock guard(lock);
      changed.wait(guard, [&] { return turn == i; });
      void* volatile p = std::malloc(3 << 20);
      std::free(p);
      ++turn;
      changed.notify_all();
      changed.wait(guard, [&] { return turn == n; });
    });
  }
  for (auto& t : threads) t.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "killed") {
    allocate(1000, false);
    ::raise(SIGKILL);
  } else if (what == "exec") {
    allocate(10, false);
    ::execl("/proc/self/exe", "lives", "nothing", nullptr);
  } else if (what == "fork") {
    be_forked();
  } else if (what == "threads") {
    for (int i = 0, n = std::atoi(argv[2]); i < n; ++i) std::thread(allocate, 10, true).join();
  } else if (what == "together") {
    work_together(std::atoi(argv[2]));
  } else if (what == "stacks") {
    for (int i = 1; i < argc; ++i) branch(std::atoi(argv[2]));  // twice, from one place
  } else if (what == "commands") {
    obey();
  } else if (what == "holders") {
    hold_one_after_the_other(std::atoi(argv[2]));
  } else if (what == "peaks") {
    have_peaks();
  } else if (what == "without_files") {
    ::close_range(3, ~0U, 0);
    allocate(20'000, false);
  } else if (what != "nothing") {
    return 2;
  }
}
