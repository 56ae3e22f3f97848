// A process that ends while other threads are within malloc.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <windows.h>

extern "C" __declspec(dllimport) void fill_late_blocks();

namespace {

std::atomic<unsigned> begun{0};

void allocate_for_ever() {
  std::vector<void*> blocks;
  ++begun;
  for (;;) {
    for (std::size_t i = 0; i < 1000; ++i) blocks.push_back(std::malloc(100 + 97 * i));
    for (void* p : blocks) std::free(p);
    blocks.clear();
  }
}

}  // namespace

int main() {
  fill_late_blocks();
  for (int t = 0; t < 4; ++t) std::thread(allocate_for_ever).detach();
  while (begun < 4) ::Sleep(1);
  ::Sleep(50);
  std::exit(0);
}
