// Remote frees: blocks that other threads free come back to the thread that owns their span, and
// wait for nobody.
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <heapwright/heap.hpp>
#include <heapwright/heap/remote_frees.hpp>

namespace heapwright {
namespace {

using links = block_links<default_recipe>;

struct alignas(64) fake_block {
  block link{};
};

TEST(RemoteInbox, GivesAllThatWasPostedOnce) {
  std::vector<fake_block> blocks(10);
  remote_inbox inbox;
  EXPECT_TRUE(inbox.is_empty());
  std::uint32_t posted = 0;
  for (std::size_t begin : {0, 4, 7}) {
    remote_batch batch{.tag = 1};
    const std::size_t end = begin == 0 ? 4 : begin == 4 ? 7 : 10;
    for (std::size_t i = begin; i < end; ++i) batch.add<links>(&blocks[i].link);
    posted += batch.count;
    EXPECT_EQ(inbox.post<links>(batch), posted);
  }
  const auto [first, count] = inbox.take();
  EXPECT_EQ(count, 10u);
  std::set<const block*> seen;
  for (const block* b = first; b != nullptr; b = links::next(b)) EXPECT_TRUE(seen.insert(b).second);
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_TRUE(inbox.is_empty());
  EXPECT_EQ(inbox.take().first, nullptr);
}

TEST(RemoteOutbox, ClassesOfOneOwnerDoNotTakeTurns) {
  for (std::uint32_t owner : {1U, 2U, 77U, owners_end - 1}) {
    remote_outbox outbox;
    std::set<const remote_batch*> places;
    for (unsigned c = 1; c <= 64; ++c) places.insert(&outbox.batch_for(tag_of(owner << owner_shift, c)));
    EXPECT_EQ(places.size(), 64u) << "owner " << owner;
  }
}

TEST(RemoteOutbox, OwnersOfOneClassBeginAtDifferentPlaces) {
  remote_outbox outbox;
  std::set<const remote_batch*> places;
  for (std::uint32_t owner = 1; owner <= 64; ++owner) places.insert(&outbox.batch_for(tag_of(owner << owner_shift, 5)));
  EXPECT_EQ(places.size(), 64u);
}

TEST(RemoteInbox, RefusesMoreThanItCanCount) {
  std::vector<fake_block> blocks(remote_inbox::most / 64 + 1);
  remote_inbox inbox;
  std::uint32_t posted = 0;
  for (fake_block& b : blocks) {
    remote_batch batch{.tag = 1, .count = 63};  // as if there were 63 more
    batch.add<links>(&b.link);
    const std::uint32_t there = inbox.post<links>(batch);
    if (posted + 64 <= remote_inbox::most) {
      EXPECT_EQ(there, posted += 64);
    } else {
      EXPECT_EQ(there, 0u);
    }
  }
  EXPECT_EQ(inbox.take().count, posted);
}

TEST(RemoteInbox, LosesNoBlockWhileManyPostAndTake) {
  constexpr int threads = 4;
  constexpr int batches = 20'000;
  std::vector<std::vector<fake_block>> blocks(threads, std::vector<fake_block>(64));
  remote_inbox inbox;
  std::atomic<std::uint64_t> taken{0};
  std::atomic<int> running{threads};
  std::vector<std::atomic<bool>> posted(threads * 64);
  // A block may be posted again when it has been taken.
  const auto take = [&] {
    const auto [first, count] = inbox.take();
    std::uint32_t n = 0;
    for (block* b = first; b != nullptr; ++n) {
      block* const following = links::next(b);
      for (int t = 0; t < threads; ++t) {
        const auto* const f = reinterpret_cast<const fake_block*>(b);
        if (f >= blocks[t].data() && f < blocks[t].data() + 64)
          posted[t * 64 + (f - blocks[t].data())].store(false, std::memory_order_release);
      }
      b = following;
    }
    ASSERT_EQ(n, count);
    taken += n;
  };
  std::vector<std::thread> all;
  std::atomic<std::uint64_t> sent{0};
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < batches; ++i) {
        remote_batch batch{.tag = 1};
        for (int k = 0; k < 3; ++k) {
          const int at = (i * 3 + k) % 64;
          if (posted[t * 64 + at].exchange(true, std::memory_order_acquire)) continue;
          batch.add<links>(&blocks[t][at].link);
        }
        if (batch.count == 0) {
          std::this_thread::yield();
          continue;
        }
        sent += batch.count;
        if (inbox.post<links>(batch) > 100 && i % 2 == 0) take();
      }
      --running;
    });
  }
  while (running > 0) take();
  for (std::thread& t : all) t.join();
  take();
  EXPECT_EQ(taken, sent);
}

inline constexpr recipe ordinary{};

TEST(RemoteFrees, BlocksComeBackToTheirOwner) {
  heap<ordinary> h("remote");
  constexpr std::size_t count = 20'000;
  std::vector<void*> blocks(count);
  for (int round = 0; round < 50; ++round) {
    for (void*& p : blocks) ASSERT_NE(p = h.allocate(100), nullptr);
    std::thread([&] {
      for (void* p : blocks) h.deallocate(p);
    }).join();
  }
  EXPECT_EQ(h.statistics().in_use, 0u);
  EXPECT_LT(h.statistics().mapped_peak, 3 * count * 112) << "the same memory serves each round";
}

TEST(RemoteFrees, WaitForNoIdleOwner) {
  heap<ordinary> h("idle owner");
  constexpr int threads = 4;
  constexpr std::size_t bytes = 4 * MiB;
  std::vector<std::vector<void*>> blocks(threads);
  std::atomic<int> ready{0};
  std::atomic<bool> end{false};
  std::vector<std::thread> owners;
  for (int t = 0; t < threads; ++t) {
    owners.emplace_back([&, t] {
      for (std::size_t sum = 0; sum < bytes; sum += 256) blocks[t].push_back(h.allocate(256));
      ++ready;
      while (!end) std::this_thread::yield();  // it never asks the heap for anything again
    });
  }
  while (ready < threads) std::this_thread::yield();
  for (const auto& of_thread : blocks) {
    for (void* p : of_thread) h.deallocate(p);
  }
  h.trim();
  const heap_statistics s = h.statistics();
  EXPECT_EQ(s.in_use, 0u);
  EXPECT_LT(s.in_caches + s.free_in_spans + s.free_resident, bytes / 4) << "of 16 MiB";
  end = true;
  for (std::thread& t : owners) t.join();
}

TEST(RemoteFrees, OfAThreadThatHasEndedServeOthers) {
  heap<ordinary> h("ended owner");
  std::vector<void*> blocks;
  for (int round = 0; round < 200; ++round) {
    std::thread([&] {
      for (int i = 0; i < 1000; ++i) blocks.push_back(h.allocate(64));
    }).join();
    for (void* p : blocks) h.deallocate(p);
    blocks.clear();
  }
  EXPECT_EQ(h.statistics().in_use, 0u);
  EXPECT_LT(h.statistics().mapped_peak, 4 * MiB) << "200 rounds of 64,000 bytes";
}

TEST(RemoteFrees, AreCountedWhereverTheyAre) {
  heap<ordinary> h("counted");
  std::vector<void*> blocks(5000);
  for (void*& p : blocks) p = h.allocate(80);
  std::atomic<int> stage{0};
  std::thread other([&] {
    for (std::size_t i = 0; i < blocks.size(); ++i) h.deallocate(blocks[i]);
    stage = 1;
    while (stage != 2) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();
  const heap_statistics s = h.statistics();
  EXPECT_EQ(s.in_use, 0u) << "what waits in an outbox or an inbox is free";
  EXPECT_EQ(s.mapped, s.in_use + s.in_caches + s.free_in_spans + s.free_resident + s.free_decommitted);
  stage = 2;
  other.join();
}

}  // namespace
}  // namespace heapwright
