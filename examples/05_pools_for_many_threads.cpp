// The same pool for all threads: each has a cache of its own, so that they rarely meet.
#include <heapwright/kit.hpp>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

int main() {
  heapwright::concurrent_pool<> messages(heapwright::layout{64, 8});
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        void* const message = messages.allocate();
        if (message == nullptr) return;
        ++count;
        messages.deallocate(message);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::printf("%d messages\n", count.load());
}
