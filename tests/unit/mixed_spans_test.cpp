// Mixed spans: blocks of many sizes side by side. What ordinary programs see of them is tested with
// all heaps in own_heap_test.cpp; here is what they are for, and what is special about them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <heapwright/heap.hpp>
#include <heapwright/heap/mixed_bits.hpp>
#include <heapwright/source/process_malloc.hpp>

namespace heapwright {
namespace {

constexpr thread_cache_plan small_caches{.share_bytes = 64 * KiB, .max_bytes_per_class = 2 * KiB};
constexpr recipe separate{.thread_cache = small_caches};
constexpr recipe mixed{.spans = {.mixed_up_to = 1024}, .thread_cache = small_caches};
constexpr recipe almost_uncached{.spans = {.mixed_up_to = 1024},
                                 .thread_cache = {.share_bytes = 64 * KiB, .max_bytes_per_class = 16}};
constexpr recipe watchful{.spans = {.mixed_up_to = 1024}, .hardening = {.check_callers = true}};

std::uint64_t taken(const heap_statistics& s) { return s.in_use + s.in_caches + s.free_in_spans; }

TEST(MixedBits, FindBeginningsAcrossWords) {
  mixed_bits bits;
  for (const std::size_t g : {0, 1, 63, 64, 65, 700, 4095}) bits.set_begins(static_cast<std::size_t>(g));
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
  bits.clear_begins(700);
  EXPECT_EQ(bits.end_of(65), 4095u);
  EXPECT_EQ(bits.before(4095), 65u);
}

TEST(MixedBits, KnowTheBlocksThatAreOutside) {
  const std::unique_ptr<void, decltype(&detail::free_aligned)> memory(
      detail::malloc_aligned(mixed_bits::span_bytes, mixed_bits::span_bytes), &detail::free_aligned);
  auto* const span = static_cast<std::byte*>(memory.get());
  const auto at = [&](std::size_t g) { return span + g * mixed_bits::grain; };
  mixed_bits bits;
  EXPECT_EQ(bits.block_at(at(0)), 0u);
  for (const std::size_t g : {0u, 60u, 70u}) bits.begin_outside(g);
  bits.clear_outside(60);
  EXPECT_EQ(bits.block_at(at(0)), 60 * mixed_bits::grain);
  EXPECT_EQ(bits.block_at(at(0) + 8), 0u) << "not aligned";
  EXPECT_EQ(bits.block_at(at(1)), 0u) << "within a block";
  EXPECT_EQ(bits.block_at(at(60)), 0u) << "a free chunk";
  EXPECT_EQ(bits.size_at(at(60)), 10 * mixed_bits::grain);
  EXPECT_EQ(bits.block_at(at(70)), mixed_bits::span_bytes - 70 * mixed_bits::grain);
}

TEST(MixedBits, WordsBelongToAThreadOneByOne) {
  mixed_bits bits;
  auto* const span = reinterpret_cast<std::byte*>(16 * mixed_bits::span_bytes);
  bits.set_owned(span + 4 * KiB, span + 8 * KiB, true);
  bits.set_owned(span + 4 * KiB, mixed_bits::word_begin(span + 6 * KiB + 48), false);
  for (std::size_t kib = 0; kib < 64; ++kib)
    EXPECT_EQ(bits.is_owned(mixed_bits::grain_of(span + kib * KiB)), kib == 6 || kib == 7) << kib;
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

TEST(MixedSpans, BlocksOfAllSizesThatAreAllocatedTogetherAreNeighbours) {
  heap<mixed> h;
  std::mt19937 random(1);
  int apart = 0;
  const std::byte* end = nullptr;
  for (int i = 0; i < 4000; ++i) {
    const auto* const p = static_cast<std::byte*>(h.allocate(1 + random() % 1000));
    apart += p != end;
    end = p + h.usable_size(p);
  }
  EXPECT_LE(apart, 400) << "at most those that the ends of spans serve";
}

TEST(MixedSpans, FiguresAreRightAtEachBlock) {
  heap<mixed> h;
  std::mt19937 random(1);
  std::vector<void*> live;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 600; ++i) {
    if (i % 3 != 2) {
      live.push_back(h.allocate(1 + random() % 1000));
      bytes += h.usable_size(live.back());
    } else {
      std::swap(live[random() % live.size()], live.back());
      bytes -= h.usable_size(live.back());
      h.deallocate(live.back());
      live.pop_back();
    }
    ASSERT_EQ(h.statistics().in_use, bytes) << i;
  }
}

TEST(MixedSpans, WhatComesBackToTheStripServesLongerBlocks) {
  heap<mixed> h;
  std::vector<void*> blocks(300);
  const auto flood = [&](std::size_t size) {
    for (void*& p : blocks) p = h.allocate(size);
    for (void* const p : blocks) h.deallocate(p);
  };
  for (int round = 0; round < 200; ++round)
    for (std::size_t size = 16; size <= 1024; size += 48) flood(size);
  EXPECT_LT(taken(h.statistics()), 1 * MiB) << "300 blocks of 1 KiB were the most";
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

/// Four blocks of a strip, and a fifth in the next step: bits of the fourth are in the word that
/// the thread goes on writing to.
TEST(MixedSpans, ABlockBesideTheOnesToComeWaits) {
  heap<mixed> h;
  std::array<std::byte*, 5> blocks{};
  std::promise<void> are_allocated, may_end;
  std::thread other([&] {
    for (std::byte*& p : blocks) p = static_cast<std::byte*>(h.allocate(960));
    are_allocated.set_value();
    may_end.get_future().wait();
  });
  are_allocated.get_future().wait();
  ASSERT_EQ(blocks[4], blocks[0] + 4 * 960);
  const auto reuses_fourth = [&] {
    const auto* const p = static_cast<std::byte*>(h.allocate(480));
    return p >= blocks[3] && p < blocks[4];
  };
  h.deallocate(blocks[3]);
  h.trim();
  EXPECT_FALSE(reuses_fourth());
  may_end.set_value();
  other.join();
  h.trim();
  EXPECT_TRUE(reuses_fourth());
}

/// What a thread has cut off its strip others free at once, while it goes on.
TEST(MixedSpans, ThreadsLeaveNothingBehind) {
  heap<almost_uncached> h;
  std::vector<void*> left;
  std::mutex lock;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 4000; ++i) {
          void* const p = h.allocate(1 + random() % 1000);
          void* other = nullptr;
          {
            const std::lock_guard guard(lock);
            left.push_back(p);
            std::swap(left[random() % left.size()], left.back());
            if (i % 2 != 0) other = std::exchange(left.back(), nullptr), left.pop_back();
          }
          h.deallocate(other);
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
  for (void* const p : left) h.deallocate(p);
  h.trim();
  const heap_statistics s = h.statistics();
  EXPECT_EQ(s.in_use + s.in_caches + s.free_in_spans + s.free_resident, 0u);
}

TEST(MixedSpansDeathTest, MistakesAreNamed) {
  heap<watchful> h;
  auto* const p = static_cast<char*>(h.allocate(40));
  void* const behind = h.allocate(40);
  EXPECT_DEATH(h.deallocate(p + 16), "heapwright: free of a pointer into a block: 0x");
  EXPECT_DEATH(h.deallocate(p + 8), "heapwright: free of a pointer into a block: 0x");
  EXPECT_DEATH((void)h.reallocate(p + 16, 100), "heapwright: realloc of a pointer into a block: 0x");
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
