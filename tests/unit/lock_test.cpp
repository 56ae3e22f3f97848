// The lock excludes, under contention and with more threads than processors, and a try never
// blocks.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <heapwright/platform/native.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {
namespace {

TEST(Lock, CountsRightUnderContention) {
  lock<native_os> guarded;
  long counter = 0;  // not atomic: ThreadSanitizer would report a lock that does not exclude
  constexpr int rounds = 20'000, threads = 8;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        holding hold(guarded);
        const long seen = counter;
        if (i % 64 == 0) std::this_thread::yield();  // invites the others in while the count is stale
        counter = seen + 1;
      }
    });
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(counter, long{rounds} * threads);
}

TEST(Lock, TryFailsWhileHeldAndSucceedsAfter) {
  lock<native_os> guarded;
  guarded.acquire();
  bool got = true;
  std::thread([&] { got = guarded.try_acquire(); }).join();
  EXPECT_FALSE(got);
  guarded.release();
  EXPECT_TRUE(guarded.try_acquire());
  guarded.release();
}

TEST(Lock, IsFreeAfterResetInAForkedChild) {
  lock<native_os> guarded;
  guarded.acquire();
  guarded.reset_after_fork();
  EXPECT_TRUE(guarded.try_acquire());
}

}  // namespace
}  // namespace heapwright
