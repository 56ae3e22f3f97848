// Programs for `fit`, of which it is known what a recipe can gain.
//
//   rounding   keeps 250,000 blocks of 264 bytes: the default rounds each to 288
//   slowed     that, and works for a while under each malloc but the default
//   nothing    keeps some blocks, and works for a while
//   server     prints "ready", keeps blocks of 264 bytes, and waits for SIGTERM
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

volatile std::sig_atomic_t is_over = 0;

std::vector<char*> blocks_of(std::size_t size, std::size_t count) {
  std::vector<char*> all(count);
  for (char*& block : all) {
    block = static_cast<char*>(std::malloc(size));
    if (block == nullptr) std::exit(1);
    std::memset(block, 1, size);
  }
  return all;
}

void free_all(const std::vector<char*>& blocks) {
  for (char* const block : blocks) std::free(block);
}

/// So long that the time of a run can be measured.
void work() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  volatile unsigned sum = 0;
  while (std::chrono::steady_clock::now() < end) sum = sum + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "rounding") {
    free_all(blocks_of(264, 250'000));
  } else if (what == "slowed") {
    const char* const preloaded = std::getenv("LD_PRELOAD");
    if (preloaded == nullptr || std::strstr(preloaded, "/libheapwright.so") == nullptr) work();
    free_all(blocks_of(264, 250'000));
  } else if (what == "nothing") {
    const auto blocks = blocks_of(64, 1000);
    work();
    free_all(blocks);
  } else if (what == "server") {
    std::signal(SIGTERM, [](int) { is_over = 1; });
    const auto blocks = blocks_of(264, 100'000);
    std::puts("ready");
    std::fflush(stdout);
    while (is_over == 0) {
      const timespec moment{0, 10'000'000};
      nanosleep(&moment, nullptr);
    }
    free_all(blocks);
  } else {
    return 2;
  }
}
