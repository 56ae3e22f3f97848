// What several threads share: locked, cached, and the numbers that threads have.
#include <heapwright/allocator/pool.hpp>
#include <heapwright/combine/bucketed.hpp>
#include <heapwright/combine/cached.hpp>
#include <heapwright/combine/locked.hpp>
#include <heapwright/platform/native.hpp>
#include <heapwright/source/os_pages.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/model.hpp"
#include "support/strict_source.hpp"

namespace heapwright {
namespace {

using testing::model;
using testing::strict_source;
using shared = upstream<strict_source>;
using lock_type = lock<native_os>;
using concurrent = cached<pool<shared>, lock_type>;

static_assert(allocator<concurrent> && can_own<concurrent> && can_trim<concurrent>);
static_assert(can_own<locked<pool<>, lock_type>> && has_stats<locked<pool<>, lock_type>>);

void run_threads(unsigned n, auto work) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < n; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
}

TEST(LockedThreads, ShareOneAllocator) {
  strict_source source;
  locked<pool<shared>, lock_type> a{layout{48, 16}, shared(source)};
  run_threads(4, [&](unsigned t) {
    model m(a, t);
    for (int i = 0; i < 3000; ++i) {
      if (m.random(2) == 0 || !m.deallocate_any()) {
        ASSERT_NE(m.allocate({48, 16}), nullptr);
      }
    }
    m.deallocate_all();
  });
  EXPECT_EQ(a.stats().in_use, 0U);
  const std::size_t held = source.held();
  EXPECT_EQ(a.with([](auto& part) { return part.trim(); }), held);
  EXPECT_EQ(source.held(), 0U);
}

TEST(CachedThreads, KeepBlocksApart) {
  strict_source source;
  {
    concurrent a{layout{40, 8}, shared(source)};
    for (int round = 0; round < 3; ++round) {
      run_threads(8, [&](unsigned t) {
        model m(a, t);
        for (int i = 0; i < 3000; ++i) {
          if (m.random(2) == 0 || !m.deallocate_any()) {
            ASSERT_NE(m.allocate({40, 8}), nullptr);
          }
        }
        m.deallocate_all();
      });
    }
  }
  EXPECT_EQ(source.held(), 0U);
}

TEST(CachedThreads, BlocksFreedElsewhereComeBack) {
  strict_source source;
  {
    concurrent a{layout{64, 8}, shared(source)};
    std::mutex lock;
    std::vector<std::vector<void*>> queue;
    std::atomic<bool> done{false};
    std::thread consumer([&] {
      for (;;) {
        const bool last = done;
        std::vector<std::vector<void*>> taken;
        {
          std::lock_guard hold(lock);
          taken.swap(queue);
        }
        for (auto& batch : taken) {
          for (void* p : batch) {
            EXPECT_EQ(*static_cast<int*>(p), 7);
            a.deallocate(p);
          }
        }
        if (last) return;
        std::this_thread::yield();
      }
    });
    for (int i = 0; i < 500; ++i) {
      std::vector<void*> batch(100);
      for (void*& p : batch) {
        p = a.allocate();
        ASSERT_NE(p, nullptr);
        *static_cast<int*>(p) = 7;
      }
      for (;;) {
        std::lock_guard hold(lock);
        if (queue.size() > 10) continue;
        queue.push_back(std::move(batch));
        break;
      }
    }
    done = true;
    consumer.join();
    EXPECT_LE(source.held(), 1 * MiB) << "50,000 blocks passed through; 1,200 were alive at once";
  }
  EXPECT_EQ(source.held(), 0U);
}

TEST(CachedThreads, MoreThreadsThanCaches) {
  strict_source source;
  cached<pool<shared>, lock_type, cached_plan{.batch = 4, .threads = 2}> a{layout{16, 8}, shared(source)};
  run_threads(6, [&](unsigned t) {
    model m(a, t);
    for (int i = 0; i < 1000; ++i) {
      if (m.random(3) > 0 || !m.deallocate_any()) {
        ASSERT_NE(m.allocate({16, 8}), nullptr);
      }
    }
    m.deallocate_all();
  });
}

TEST(Cached, ExhaustionIsNullAndPasses) {
  strict_source source;
  source.allow(1);
  concurrent a{layout{1000, 8}, shared(source)};
  model m(a);
  while (m.allocate({1000, 8}) != nullptr) {
  }
  EXPECT_GT(m.blocks(), 60U) << "also the last blocks of a batch that was not full";
  EXPECT_TRUE(m.deallocate_any());
  EXPECT_NE(m.allocate({1000, 8}), nullptr);
  m.deallocate_all();
  source.allow(SIZE_MAX);
  EXPECT_NE(m.allocate({1000, 8}), nullptr);
  m.deallocate_all();
  EXPECT_GT(a.trim(), 0U);
  EXPECT_EQ(source.held(), 0U);
}

TEST(Cached, BlocksOfAFreshCacheLieInARow) {
  cached<pool<>, lock_type> a{layout{32, 8}};
  auto* before = static_cast<std::byte*>(a.allocate());
  for (int i = 0; i < 100; ++i) {
    auto* const next = static_cast<std::byte*>(a.allocate());
    ASSERT_EQ(next, before + 32);
    before = next;
  }
}

TEST(Cached, InBuckets) {
  bucketed<cached<pool<>, lock_type, cached_plan{.threads = 4}>, 64> a;
  model m(a);
  for (int i = 0; i < 2000; ++i) {
    if (m.random(3) > 0 || !m.deallocate_any()) {
      ASSERT_NE(m.allocate({m.random(65), 8}), nullptr);
    }
  }
  m.deallocate_all();
}

TEST(ThreadIndexThreads, DistinctWhileTheyRunAndHandedOn) {
  std::set<unsigned> all;
  std::mutex lock;
  for (int round = 0; round < 20; ++round) {
    std::set<unsigned> now;
    std::atomic<unsigned> here{0};
    run_threads(8, [&](unsigned) {
      const unsigned mine = thread_index::of_this_thread();
      EXPECT_EQ(thread_index::of_this_thread(), mine);
      {
        std::lock_guard hold(lock);
        EXPECT_TRUE(now.insert(mine).second) << "two threads have " << mine;
        all.insert(mine);
      }
      for (++here; here < 8;) std::this_thread::yield();
    });
  }
  EXPECT_LE(all.size(), 10U) << "160 threads ran, 8 at a time";
}

}  // namespace
}  // namespace heapwright
