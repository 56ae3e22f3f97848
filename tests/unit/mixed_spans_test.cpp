// Mixed spans: blocks of many sizes side by side. What ordinary programs see of them is tested with
// all heaps in own_heap_test.cpp; here is what they are for, and what is special about them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <heapwright/heap.hpp>
#include <heapwright/heap/mixed_bits.hpp>

namespace heapwright {
namespace {

constexpr thread_cache_plan small_caches{.share_bytes = 64 * KiB, .max_bytes_per_class = 2 * KiB};
constexpr recipe separate{.thread_cache = small_caches};
constexpr recipe mixed{.spans = {.mixed_up_to = 1024}, .thread_cache = small_caches};
constexpr recipe watchful{.spans = {.mixed_up_to = 1024}, .hardening = {.check_callers = true}};

std::uint64_t taken(const heap_statistics& s) { return s.in_use + s.in_caches + s.free_in_spans; }

TEST(MixedBits, FindBeginningsAcrossWords) {
  mixed_bits bits;
  for (const std::size_t g : {0, 1, 63, 64, 65, 700, 4095}) bits.set_begins(static_cast<std::size_t>(g), true);
  EXPECT_EQ(bits.end_of(0), 1u);
  EXPECT_EQ(bits.end_of(1), 63u);
  EXPECT_EQ(bits.end_of(63), 64u);
  EXPECT_EQ(bits.end_of(64), 65u);
  EXPECT_EQ(bits.end_of(65), 700u);
  EXPECT_EQ(bits.end_of(700), 4095u);
  EXPECT_EQ(bits.end_of(4095), mixed_bits::grains);
  EXPECT_EQ(bits.before(4095), 700u);
  EXPECT_EQ(bits.before(700), 65u);
  EXPECT_EQ(bits.before(64), 63u);
  EXPECT_EQ(bits.before(63), 1u);
  EXPECT_EQ(bits.before(1), 0u);
  bits.set_begins(700, false);
  EXPECT_EQ(bits.end_of(65), 4095u);
  EXPECT_EQ(bits.before(4095), 65u);
}

/// Blocks of 96 bytes of which two neighbours in four are freed, and then blocks of 192. Returns by
/// how much the second grew.
template <const recipe& R>
double growth_by_longer_blocks() {
  heap<R> h;
  std::vector<void*> all(40'000);
  for (void*& p : all) p = h.allocate(96);
  const double before = static_cast<double>(taken(h.statistics()));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % 4 < 2) h.deallocate(all[i]);
  for (std::size_t i = 0; i < all.size() / 4; ++i) EXPECT_NE(h.allocate(192), nullptr);
  return static_cast<double>(taken(h.statistics())) / before;
}

TEST(MixedSpans, FreeNeighboursServeLongerBlocks) {
  EXPECT_LT(growth_by_longer_blocks<mixed>(), 1.02);
  EXPECT_GT(growth_by_longer_blocks<separate>(), 1.4);
}

TEST(MixedSpans, WhatIsAllFreeAgainGoesBack) {
  heap<mixed> h;
  std::mt19937 random(1);
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> all(20'000);
    for (void*& p : all) p = h.allocate(1 + random() % 1024);
    std::shuffle(all.begin(), all.end(), random);
    for (void* const p : all) h.deallocate(p);
    h.trim();
    const heap_statistics s = h.statistics();
    EXPECT_EQ(s.in_use + s.in_caches + s.free_in_spans + s.free_resident, 0u);
    EXPECT_EQ(s.mapped, s.free_decommitted);
  }
}

TEST(MixedSpans, BlocksAreAlignedAsAsked) {
  heap<mixed> h;
  for (std::size_t alignment = 16; alignment <= 4096; alignment *= 2) {
    for (std::size_t size = 1; size <= 1200; size += 13) {
      auto* const p = static_cast<std::byte*>(h.allocate({size, alignment}));
      ASSERT_NE(p, nullptr);
      ASSERT_TRUE(is_aligned(p, alignment)) << size << ", " << alignment;
      ASSERT_GE(h.usable_size(p), size);
      std::memset(p, 1, size);
      if (size % 2 == 0) h.deallocate(p);
    }
  }
}

TEST(MixedSpans, EachThreadFreesBlocksOfOthers) {
  heap<mixed> h;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::pair<unsigned char*, std::size_t>> all;
    std::mt19937 random(static_cast<unsigned>(round));
    for (int i = 0; i < 3000; ++i) {
      const std::size_t size = 1 + random() % 1500;
      auto* const p = static_cast<unsigned char*>(h.allocate(size));
      std::memset(p, static_cast<int>(size % 251), size);
      all.emplace_back(p, size);
    }
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < all.size(); i += 3) {
          for (std::size_t at = 0; at < all[i].second; at += 7) ASSERT_EQ(all[i].first[at], all[i].second % 251);
          h.deallocate(all[i].first);
          if (i % 5 == 0) h.deallocate(h.allocate(1 + i % 900));
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
  EXPECT_EQ(h.statistics().in_use, 0u);
}

TEST(MixedSpansDeathTest, MistakesAreNamed) {
  heap<watchful> h;
  auto* const p = static_cast<char*>(h.allocate(40));
  void* const behind = h.allocate(40);
  EXPECT_DEATH(h.deallocate(p + 16), "heapwright: free of a pointer into a block: 0x");
  EXPECT_DEATH(h.deallocate(p + 8), "heapwright: free of a pointer into a block: 0x");
  EXPECT_DEATH(
      {
        h.deallocate(p);
        h.deallocate(p);
      },
      "heapwright: double free: 0x");
  EXPECT_DEATH(
      {
        h.deallocate(p);
        h.trim();
        h.deallocate(p);
      },
      "heapwright: free of a pointer into a block: 0x.*or free already");
  h.deallocate(behind);
}

}  // namespace
}  // namespace heapwright
