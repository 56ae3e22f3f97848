// Best-fit heaps side by side in one range: which shard a block comes from, how it comes back, and
// what the whole answers when shards are full.
#include <heapwright/kit.hpp>

#include <gtest/gtest.h>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "support/meeting.hpp"
#include "support/model.hpp"

namespace heapwright {
namespace {

using testing::model;

class memory {
 public:
  explicit memory(std::size_t bytes) : bytes_(bytes), at_(new std::byte[bytes]) {}
  operator std::span<std::byte>() const noexcept { return {at_.get(), bytes_}; }
  [[nodiscard]] std::size_t offset(const void* p) const noexcept { return address_of(p) - address_of(at_.get()); }

 private:
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> at_;
};

void run_threads(unsigned n, auto work) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < n; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
}

template <class A>
void* allocated_by_another_thread(A& a, layout l) {
  void* p = nullptr;
  std::thread([&] { p = a.allocate(l); }).join();
  return p;
}

layout some_layout(auto& m) {
  const std::size_t size = m.random(20) == 0 ? m.random(20000) : m.random(300);
  return {size, m.random(8) == 0 ? std::size_t{1} << m.random(10) : 16};
}

TEST(Sharded, ARangeThatIsTooSmallIsRefusedAndALargerOneTaken) {
  const memory small(100), large(1 * MiB), other(1 * MiB);
  concurrent_best_fit<> a(small);
  EXPECT_FALSE(a.attached());
  EXPECT_EQ(a.allocate(1), nullptr);
  EXPECT_FALSE(a.owns(&a));
  EXPECT_FALSE(a.attach({}));
  EXPECT_TRUE(a.attach(large));
  EXPECT_TRUE(a.attached());
  EXPECT_FALSE(a.attach(other)) << "it has a range";
  EXPECT_NE(a.allocate(1), nullptr);
}

TEST(ShardedThreads, ShareOneRangeAndEndWithNothingInUse) {
  const memory range(64 * MiB);
  concurrent_best_fit<> a(range);
  run_threads(8, [&](unsigned t) {
    model m(a, t);
    for (int i = 0; i < 3000; ++i) {
      if (m.random(2) == 0 || !m.deallocate_any()) {
        ASSERT_NE(m.allocate(some_layout(m)), nullptr);
      }
      if (m.random(4) == 0) (void)m.resize_any(m.random(400));
    }
    m.check_all();
    m.deallocate_all();
  });
  EXPECT_EQ(a.stats().in_use, 0U);
}

TEST(ShardedThreads, MoreThreadsThanShards) {
  const memory range(16 * MiB);
  concurrent_best_fit<best_fit_plan{.merging = merge::deferred}, 2> a(range);
  run_threads(6, [&](unsigned t) {
    model m(a, t);
    for (int i = 0; i < 2000; ++i) {
      if (m.random(2) == 0 || !m.deallocate_any()) {
        ASSERT_NE(m.allocate(some_layout(m)), nullptr);
      }
    }
    m.deallocate_all();
  });
  EXPECT_EQ(a.stats().in_use, 0U);
}

TEST(ShardedThreads, TwoThatRunAtOnceHaveAShardEach) {
  const memory range(2 * MiB);
  concurrent_best_fit<best_fit_plan{}, 2> a(range);
  testing::meeting both(2);
  std::vector<void*> blocks(2);
  run_threads(2, [&](unsigned t) {
    both.arrive_and_wait();
    const std::size_t half = thread_index::of_this_thread() % 2;
    blocks[t] = a.allocate(100);
    EXPECT_EQ(range.offset(blocks[t]) / (1 * MiB), half);
    both.arrive_and_wait();
  });
  EXPECT_NE(range.offset(blocks[0]) / (1 * MiB), range.offset(blocks[1]) / (1 * MiB));
}

TEST(ShardedThreads, BlocksFreedElsewhereGoHomeAndAreUsedAgain) {
  const memory range(1 * MiB);
  concurrent_best_fit<best_fit_plan{}, 2> a(range);
  constexpr std::size_t per_round = 100;
  std::atomic<std::vector<void*>*> handed_over{nullptr};
  std::atomic<bool> done{false};
  std::thread consumer([&] {
    for (;;) {
      const bool last = done;
      if (auto* const batch = handed_over.exchange(nullptr)) {
        for (std::size_t i = 0; i < batch->size(); ++i) {
          void* const p = (*batch)[i];
          EXPECT_EQ(*static_cast<int*>(p), 7);
          if (i % 2 == 0) {
            a.deallocate(p);
          } else {
            a.deallocate(p, 1000);
          }
        }
        delete batch;
      }
      if (last) return;
      std::this_thread::yield();
    }
  });
  // A hundred times what the range has room for.
  for (int round = 0; round < 1000; ++round) {
    auto batch = std::make_unique<std::vector<void*>>();
    for (std::size_t i = 0; i < per_round; ++i) {
      void* const p = a.allocate(1000);
      ASSERT_NE(p, nullptr) << "round " << round;
      *static_cast<int*>(p) = 7;
      batch->push_back(p);
    }
    while (handed_over.load() != nullptr) std::this_thread::yield();
    handed_over = batch.release();
  }
  while (handed_over.load() != nullptr) std::this_thread::yield();
  done = true;
  consumer.join();
  EXPECT_EQ(a.stats().in_use, 0U);
}

TEST(ShardedThreads, AnyThreadFreesResizesAndAsksOfAnyBlock) {
  const memory range(32 * MiB);
  concurrent_best_fit<best_fit_plan{}, 4> a(range);
  struct block {
    unsigned char* at;
    std::size_t size;
    unsigned char pattern;
  };
  std::mutex lock;
  std::deque<block> shared_blocks;
  run_threads(6, [&](unsigned t) {
    std::minstd_rand random(t + 1);
    for (int i = 0; i < 4000; ++i) {
      block b{nullptr, random() % 500 + 1, static_cast<unsigned char>(random())};
      if (random() % 2 == 0) {
        b.at = static_cast<unsigned char*>(a.allocate(b.size));
        ASSERT_NE(b.at, nullptr);
        std::memset(b.at, b.pattern, b.size);
      }
      {
        std::lock_guard hold(lock);
        if (b.at != nullptr) shared_blocks.push_back(b);
        if (shared_blocks.size() < 50) continue;
        b = shared_blocks.front();
        shared_blocks.pop_front();
      }
      ASSERT_TRUE(a.owns(b.at));
      ASSERT_GE(a.usable_size(b.at), b.size);
      if (random() % 2 == 0) {
        const std::size_t to = random() % 2000 + 1;
        auto* const moved = static_cast<unsigned char*>(a.reallocate(b.at, to));
        ASSERT_NE(moved, nullptr);
        b = {moved, std::min(to, b.size), b.pattern};
      }
      for (std::size_t byte = 0; byte < b.size; ++byte) ASSERT_EQ(b.at[byte], b.pattern);
      a.deallocate(b.at);
    }
  });
  for (const block& b : shared_blocks) a.deallocate(b.at);
  EXPECT_EQ(a.stats().in_use, 0U);
}

TEST(Sharded, OtherShardsHelpOutUntilAllAreFull) {
  const memory range(1 * MiB);
  concurrent_best_fit<best_fit_plan{}, 4> a(range);
  std::vector<void*> blocks;
  while (void* const p = a.allocate(1000)) blocks.push_back(p);
  EXPECT_GT(blocks.size(), 1000U) << "of 1 MiB";
  EXPECT_EQ(a.allocate(300 * KiB), nullptr) << "larger than a shard";
  for (void* const p : blocks) a.deallocate(p);
  EXPECT_EQ(a.stats().in_use, 0U);
  EXPECT_NE(a.allocate(200 * KiB), nullptr) << "each shard is one free block again";
}

TEST(Sharded, AReallocationLeavesAShardThatIsFull) {
  const memory range(1 * MiB);
  concurrent_best_fit<best_fit_plan{}, 2> a(range);
  auto* const p = static_cast<char*>(a.allocate(400 * KiB));
  auto* const q = static_cast<char*>(a.allocate(100));
  std::strcpy(q, "kept");
  auto* const moved = static_cast<char*>(a.reallocate(q, 300 * KiB));
  ASSERT_NE(moved, nullptr);
  EXPECT_STREQ(moved, "kept");
  EXPECT_EQ(a.reallocate(moved, 600 * KiB), nullptr);
  EXPECT_STREQ(moved, "kept") << "a reallocation that fails leaves the block";
  EXPECT_EQ(a.reallocate(moved, 0), nullptr);
  a.deallocate(p);
  EXPECT_EQ(a.stats().in_use, 0U);
}

TEST(Sharded, FiguresAreThoseOfAllShards) {
  const memory range(1 * MiB);
  concurrent_best_fit<best_fit_plan{}, 4> a(range);
  void* const p = a.allocate(25);
  void* const q = allocated_by_another_thread(a, 1000);
  const best_fit_stats s = a.stats();
  EXPECT_EQ(s.in_use, 1025U);
  EXPECT_GT(s.rounding, 0U);
  EXPECT_EQ(s.held, s.in_use + s.rounding + s.headers + s.available);
  EXPECT_GT(s.held, 1 * MiB - 4 * KiB);
  EXPECT_LE(s.largest_free, 256 * KiB);
  std::size_t live = 0, bytes = 0;
  a.for_each_live([&](void* block, std::size_t usable) {
    EXPECT_TRUE(block == p || block == q);
    bytes += usable;
    ++live;
  });
  EXPECT_EQ(live, 2U);
  EXPECT_GE(bytes, 1025U);
  a.reset();
  EXPECT_EQ(a.stats().in_use, 0U);
}

/// A best_fit that says what it trims.
struct trimmable : best_fit<> {
  std::size_t trim() noexcept { return 100; }
};

TEST(Sharded, TrimReachesEveryShard) {
  sharded<trimmable, lock<native_os>, 4> a;
  EXPECT_EQ(a.trim(), 400U);
}

TEST(Sharded, DefragmentMergesInEveryShard) {
  const memory range(4 * MiB);
  concurrent_best_fit<best_fit_plan{.merging = merge::deferred}, 2> a(range);
  std::vector<void*> blocks;
  while (void* const p = a.allocate(1000)) blocks.push_back(p);
  for (void* const p : blocks) a.deallocate(p);
  EXPECT_GT(a.defragment(), 3 * MiB);
  EXPECT_GT(a.stats().largest_free, 1 * MiB);
}

#ifndef _WIN32  // it has no fork
TEST(ShardedThreads, AForkedChildAllocatesWhileOthersHeldLocks) {
  const memory range(16 * MiB);
  concurrent_best_fit<best_fit_plan{}, 2> a(range);
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) a.deallocate(a.allocate(100));
  });
  for (int i = 0; i < 30; ++i) {
    a.lock_all();
    const pid_t child = fork();
    a.unlock_all();
    if (child == 0) {
      alarm(20);                                 // a lock that stays held ends it
      while (a.allocate(64 * KiB) != nullptr) {  // from every shard
      }
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  done = true;
  other.join();
}
#endif

#if !defined(__SANITIZE_THREAD__)
TEST(ShardedDeathTest, MisuseIsNamedWhereverTheBlockIsAtHome) {
  if constexpr (!checks_callers && !poisons) GTEST_SKIP() << "nothing is checked";
  const memory range(1 * MiB);
  concurrent_best_fit<best_fit_plan{}, 2> a(range);
  int local = 0;
  EXPECT_DEATH(a.deallocate(&local), "free of a foreign pointer");
  a.deallocate(a.allocate(10));  // this thread has a number, so another one gets another shard
  void* const p = allocated_by_another_thread(a, 100);
  a.deallocate(p);
  EXPECT_DEATH(a.deallocate(p), "double free");
}
#endif

}  // namespace
}  // namespace heapwright
