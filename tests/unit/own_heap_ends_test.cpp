// Heaps of one's own when threads end, before their heap or after it, and what a heap gives back
// then.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <heapwright/heap.hpp>

#include "../kit/support/meeting.hpp"

namespace heapwright {
namespace {

using own_heap = heap<default_recipe>;

TEST(OwnHeaps, ThreadsThatComeAndGoLeaveNothingBehind) {
  own_heap h;
  const auto come_and_go = [&] {
    std::thread([&] {
      for (int i = 0; i < 200; ++i) h.deallocate(h.allocate(static_cast<std::size_t>(i)));
    }).join();
  };
  for (int i = 0; i < 10; ++i) come_and_go();
  const heap_statistics before = h.statistics();
  for (int i = 0; i < 200; ++i) come_and_go();
  const heap_statistics after = h.statistics();
  EXPECT_EQ(after.metadata, before.metadata);
  EXPECT_EQ(after.mapped, before.mapped);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.threads_total, before.threads_total + 200);
}

constexpr recipe keeps_for_an_hour{.pages = {.purge_window_ms = 3'600'000}};

TEST(OwnHeaps, WhatThreadsHaveWorkedWithGoesBackWhenTheyHaveEnded) {
  heap<keeps_for_an_hour> h;
  ASSERT_NE(h.allocate(100), nullptr);
  std::vector<std::thread> working;
  testing::meeting all_have_theirs(4);  // what is given back while others still grow is missed, and then stays
  for (int t = 0; t < 4; ++t) {
    working.emplace_back([&] {
      std::vector<void*> blocks(20'000);
      for (auto& p : blocks) p = h.allocate(200);
      all_have_theirs.arrive_and_wait();
      for (auto* p : blocks) h.deallocate(p);
    });
  }
  for (auto& t : working) t.join();
  EXPECT_GT(h.statistics().mapped_peak, 4 * MiB);
  EXPECT_LT(h.statistics().free_resident, 1 * MiB);
}

TEST(OwnHeaps, AThreadMayOutliveAHeap) {
  auto first = std::make_unique<own_heap>("first");
  std::mutex turn;
  turn.lock();
  std::atomic<int> stage{0};
  std::optional<own_heap> second;
  std::thread other([&] {
    EXPECT_NE(first->allocate(100), nullptr);
    stage = 1;
    turn.lock();
    EXPECT_NE(second->allocate(100), nullptr) << "of the place that the first had";
    EXPECT_EQ(second->statistics().threads, 1u);
  });
  while (stage == 0) std::this_thread::yield();
  first.reset();
  second.emplace("second");
  turn.unlock();
  other.join();
  EXPECT_EQ(second->statistics().threads, 0u);
}

constexpr recipe only_when_asked{.pages = {.give_back = give_back_policy::when_asked}};

TEST(Recycler, GivesBackWhatNobodyAskedFor) {
  heap<only_when_asked> h;
  recycler gives_back(h, std::chrono::milliseconds(2));
  std::vector<void*> blocks;
  for (int i = 0; i < 2000; ++i) blocks.push_back(h.allocate(20'000));
  for (void* p : blocks) h.deallocate(p);
  // It gives back what is not in thread caches.
  while (h.statistics().free_resident > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
#ifndef _WIN32  // it has no fork
  if (const pid_t child = ::fork(); child == 0) {
    gives_back.~recycler();
    ::_exit(0);
  } else {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "a child ends without waiting for a thread that it does not have";
  }
#endif
}

#ifndef _WIN32  // GCC frees thread-local objects there before it calls their destructors
TEST(OwnHeaps, ADestructorThatRunsAfterTheThreadsEnd) {
  static own_heap h;
  struct late {
    void* p = nullptr;
    ~late() {
      h.deallocate(p);
      h.deallocate(h.allocate(100));
    }
  };
  std::thread([] {
    static thread_local late kept;  // made before the thread's first use of the heap, so destroyed after it
    kept.p = nullptr;
    kept.p = h.allocate(100);
  }).join();
  EXPECT_EQ(h.statistics().in_use, 0u);
  EXPECT_EQ(h.statistics().threads, 0u);
}
#endif

}  // namespace
}  // namespace heapwright
