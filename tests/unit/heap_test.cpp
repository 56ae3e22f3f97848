// One thread's use of the heap: blocks do not overlap, keep their contents, are aligned, and their
// memory comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <heapwright/heap/heap_core.hpp>

#include "fake_os.hpp"

namespace heapwright {
namespace {

using OS = testing::fake_os<4 * KiB>;
using heap_type = heap_core<default_recipe, OS>;
using classes = class_table<default_recipe>;

class Heap : public ::testing::Test, protected testing::single_threaded<heap_type> {
 protected:
  heap_figures& f = heap().figures();
};

TEST_F(Heap, EverySmallSizeAndManyLargeOnes) {
  std::map<std::byte*, std::size_t> blocks;
  const auto take = [&](std::size_t size) {
    auto* p = static_cast<std::byte*>(allocate(size));
    ASSERT_NE(p, nullptr);
    ASSERT_TRUE(is_aligned(p, 16));
    ASSERT_GE(heap().usable_size(p), size);
    std::memset(p, static_cast<int>(size % 251), size);
    blocks[p] = size;
  };
  for (std::size_t size = 0; size <= 33 * KiB; size += size < 2048 ? 1 : 61) take(size);
  for (std::size_t size = 33 * KiB; size <= 16 * MiB; size = size * 3 / 2) take(size);
  std::byte* end = nullptr;
  for (auto [p, size] : blocks) {
    ASSERT_GE(p, end) << "blocks overlap";
    end = p + size;
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(p[i], static_cast<std::byte>(size % 251));
  }
  for (auto [p, size] : blocks) free(p);
}

TEST_F(Heap, MemoryOfOneClassServesAnother) {
  constexpr std::size_t total = 32 * MiB;
  const auto fill = [&](std::size_t size) {
    std::vector<void*> blocks;
    for (std::size_t used = 0; used < total; used += size) blocks.push_back(allocate(size));
    for (void* p : blocks) free(p);
  };
  fill(64);
  const std::uint64_t peak = f.mapped_peak;
  fill(200);
  fill(3000);
  fill(100'000);
  EXPECT_LE(f.mapped_peak, peak + 4 * MiB);
}

TEST_F(Heap, TrimReturnsAllThatIsFree) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100'000; ++i) blocks.push_back(allocate(static_cast<std::size_t>(i % 3000)));
  for (void* p : blocks) free(p);
  EXPECT_GT(heap().trim(*cache), 16 * MiB);
  EXPECT_EQ(f.free_resident, 0u);
  EXPECT_EQ(f.spans, 0u);
  EXPECT_EQ(f.large, 0u);
}

TEST_F(Heap, QuietMemoryGoesBackWhileTheThreadDoesLittle) {
  std::vector<void*> blocks;
  for (int i = 0; i < 500'000; ++i) blocks.push_back(allocate(100));
  for (void* p : blocks) free(p);
  for (int i = 0; i < 5000; ++i) {
    free(allocate(100));
    if (i % 500 == 0) OS::now += default_recipe.pages.purge_window_ms;
  }
  EXPECT_LT(f.spans + f.free_resident, 2 * MiB);
}

TEST_F(Heap, SparseSpansComeFreeAfterAPeak) {
  std::minstd_rand random(1);
  std::vector<void*> blocks;
  for (int i = 0; i < 200'000; ++i) blocks.push_back(allocate(64));
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (; blocks.size() > 2000; blocks.pop_back()) free(blocks.back());
  EXPECT_GT(f.spans, 8 * MiB) << "some of nearly every span is still in use";
  for (int i = 0; i < 100'000; ++i) {
    void*& p = blocks[random() % blocks.size()];
    free(p);
    p = allocate(64);
    if (i % 5000 == 0) OS::now += default_recipe.pages.purge_window_ms;
  }
  EXPECT_LT(f.spans + f.free_resident, 1 * MiB) << blocks.size() * 64 << " bytes are in use";
  for (void* p : blocks) free(p);
}

TEST_F(Heap, AlignmentsFromOneByteToOneGibibyte) {
  for (std::size_t alignment = 1; alignment <= GiB; alignment *= 2) {
    for (std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{70'000}}) {
      void* const p = allocate_aligned(size, alignment);
      ASSERT_NE(p, nullptr) << alignment;
      ASSERT_TRUE(is_aligned(p, alignment)) << alignment;
      std::memset(p, 0xEE, size);
      free(p);
    }
  }
}

TEST_F(Heap, BlocksOfSeveralPagesBeginAtLinesAllOverThePage) {
  for (const std::size_t size : {8 * KiB, 12 * KiB, 16 * KiB, 32 * KiB, 64 * KiB}) {
    std::map<std::uintptr_t, int> places;
    std::vector<void*> blocks;
    for (int i = 0; i < 50; ++i) {
      blocks.push_back(allocate(size));
      ++places[address_of(blocks.back()) % heap_page];
    }
    // Columns that a program writes side by side should fit the ways of the processor's first
    // cache: 8 to 12 today. Four places would have 13.
    for (const auto& [place, blocks_there] : places) EXPECT_LE(blocks_there, 12) << size << ", " << place;
    for (void* p : blocks) free(p);
    void* const asked = allocate_aligned(size, heap_page);
    EXPECT_TRUE(is_aligned(asked, heap_page));
    free(asked);
  }
}

TEST_F(Heap, PageRunBlocksAreKeptOnceTheyAreAskedForAgain) {
  const std::uint64_t before = f.large;
  free(allocate(100'000));
  EXPECT_EQ(f.large, before) << "what a growing array leaves behind is not kept";
  for (int i = 0; i < 3; ++i) free(allocate(100'000));
  const std::uint64_t kept = f.large;
  EXPECT_GT(kept, before);
  for (int i = 0; i < 100; ++i) {
    void* const p = allocate(100'000);
    EXPECT_EQ(f.large, kept) << "it comes from the cache";
    free(p);
  }
  EXPECT_EQ(cache->cached_bytes(1, classes::count), kept - before);
  heap().trim(*cache);
  EXPECT_EQ(f.large, before);
}

TEST_F(Heap, KeptPageRunBlocksGoBackWhenTheyAreOutOfUse) {
  const std::uint64_t before = f.large;
  for (int i = 0; i < 10; ++i) free(allocate(100'000));
  EXPECT_GT(f.large, before);
  for (int i = 0; i < 5000; ++i) {
    free(allocate(100));
    if (i % 500 == 0) OS::now += default_recipe.pages.purge_window_ms;
  }
  EXPECT_EQ(f.large, before);
}

TEST_F(Heap, AThreadThatEndsLeavesItsCacheToTheNext) {
  auto* const first = heap().open_cache();
  void* const p = heap().allocate_slow(*first, 100);
  EXPECT_TRUE(first->push(p));
  heap().close_cache(first);
  auto* const second = heap().open_cache();
  EXPECT_EQ(second, first);
  const std::uint64_t left = second->cached_bytes(1, classes::count);
  EXPECT_GT(left, 0u);
  void* const q = heap().allocate_slow(*second, 100);  // a thread that has just got its cache has not asked it yet
  EXPECT_EQ(second->cached_bytes(1, classes::count), left - heap().usable_size(q));
  EXPECT_TRUE(second->push(q));
  heap().close_cache(second);
  heap().trim(*cache);
  EXPECT_EQ(f.spans, 0u) << "memory that is short is had from threads that have ended, too";
}

TEST_F(Heap, WhatNoThreadComesForGoesBackInTime) {
  auto* const ended = heap().open_cache();
  void* const p = heap().allocate_slow(*ended, 100);
  EXPECT_TRUE(ended->push(p));
  heap().close_cache(ended);
  EXPECT_GT(f.spans, 0u);
  for (int i = 0; i < 5000; ++i) {
    free(allocate(20'000));
    if (i % 500 == 0) OS::now += default_recipe.pages.purge_window_ms;
  }
  EXPECT_EQ(heap().blocks_outside(classes::index(100)), 0u);
}

TEST_F(Heap, FewCachesAreParked) {
  constexpr unsigned c = classes::index(100);
  constexpr int threads = 50;
  std::vector<heap_type::cache*> caches;
  for (int i = 0; i < threads; ++i) {
    caches.push_back(heap().open_cache());
    free(heap().allocate_slow(*caches.back(), 100));
  }
  for (auto* ended : caches) heap().close_cache(ended);
  const unsigned parked = default_recipe.thread_cache.max_parked * classes::of(c).first_kept;
  EXPECT_LE(heap().blocks_outside(c), parked + threads) << "each block is on its way back in this thread's cache";
}

TEST_F(Heap, RemoteFreesOfPageRunBlocksGoBackAtOnce) {
  auto* const other = heap().open_cache();
  const std::uint64_t before = f.large;
  for (int i = 0; i < 100; ++i) {
    void* p = other->pop(100'000);
    if (p == nullptr) p = heap().allocate_slow(*other, 100'000);
    free(p);
    EXPECT_EQ(f.large, before);
  }
  heap().close_cache(other);
}

TEST_F(Heap, ThreadsShareSpansOfLongBlocksAndKeepTheirOwn) {
  constexpr std::size_t size = 20'000;
  std::vector<heap_type::cache*> threads;
  for (int i = 0; i < 8; ++i) threads.push_back(heap().open_cache());
  std::vector<void*> blocks;
  for (auto* t : threads) blocks.push_back(heap().allocate_slow(*t, size));
  EXPECT_LE(f.spans, 2 * classes::of(classes::index(size)).first_pages * heap_page);

  // Neighbours in a span, of two threads: each thread comes to keep what it has drawn itself.
  for (int round = 0; round < 3; ++round) {
    for (std::size_t t = 0; t < 2; ++t) {
      if (!threads[t]->push(blocks[t])) heap().deallocate_slow(*threads[t], blocks[t]);
      blocks[t] = threads[t]->pop(size);
      if (blocks[t] == nullptr) blocks[t] = heap().allocate_slow(*threads[t], size);
    }
  }
  EXPECT_FALSE(threads[0]->push(blocks[1]));
  EXPECT_TRUE(threads[0]->push(blocks[0]));
  EXPECT_TRUE(threads[1]->push(blocks[1]));
  for (std::size_t t = 2; t < threads.size(); ++t) heap().deallocate_slow(*threads[t], blocks[t]);
  for (auto* t : threads) heap().close_cache(t);
  heap().trim(*cache);
  EXPECT_EQ(f.spans, 0u);
}

// The fast path of free finds no room for a block of this thread's. Before the slow step looks
// again, another thread comes to draw from the block's span, and the block counts as the other
// thread's.
TEST_F(Heap, ASpanChangesThreadsInTheMiddleOfAFree) {
  auto* const other = heap().open_cache();
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(allocate(3000));
  free(blocks[0]);  // of a class of which nothing is kept at first
  ASSERT_FALSE(cache->push(blocks[1]));
  void* const taken = heap().allocate_slow(*other, 3000);
  ASSERT_EQ(taken, blocks[0]) << "of the same span";
  heap().deallocate_slow(*cache, blocks[1]);
  heap().trim(*cache);  // gives back all that is kept: nothing

  heap().deallocate_slow(*other, taken);
  for (std::size_t i = 2; i < blocks.size(); ++i) free(blocks[i]);
  heap().close_cache(other);
  heap().trim(*cache);
  EXPECT_EQ(f.spans, 0u);
}

TEST_F(Heap, ABlockOfPagesGrowsAndShrinksWhereItIs) {
  void* const p = allocate(900'000);
  ASSERT_EQ(heap().reallocate(*cache, p, 40'000), p);  // the pages behind it are free now
  for (const std::size_t size :
       {std::size_t{50'000}, std::size_t{200'000}, std::size_t{700'000}, std::size_t{90'000}, std::size_t{36'000}}) {
    EXPECT_EQ(heap().reallocate(*cache, p, size), p) << size;
    EXPECT_GE(heap().usable_size(p), size);
    EXPECT_LE(heap().usable_size(p), size + size / 4);
    std::memset(p, 0xAB, heap().usable_size(p));
  }
  free(p);
}

TEST_F(Heap, ALargeBlockIsAsLongAsWasAskedFor) {
  void* p = allocate(1'000'001);
  EXPECT_EQ(heap().usable_size(p), 1'000'001U);
  for (const std::size_t size : {std::size_t{900'003}, std::size_t{990'000}, std::size_t{3'000'005}}) {
    p = heap().reallocate(*cache, p, size);
    EXPECT_EQ(heap().usable_size(p), size);
    std::memset(p, 0xAB, size);
  }
  free(p);
  void* const aligned = heap().allocate_aligned(*cache, 10, 64 * KiB);
  EXPECT_EQ(heap().usable_size(aligned), 10U);
  free(aligned);
}

TEST_F(Heap, WritesBesideALargeBlockAreTold) {
  static int told = 0;
  the_misuse_policy.listener = [](const char*) noexcept { ++told; };
  the_misuse_policy.goes_on = true;
  // All are allocated before one is freed: where a block begins is decided by its page.
  std::vector<char*> blocks;
  int written_before = 0;
  for (std::size_t size = 400'000; blocks.size() < 20; size += heap_page) {
    auto* const p = static_cast<char*>(allocate(size));
    if (is_aligned(p, heap_page)) {
      p[size] = 1;  // what lies before it is another block's
    } else {
      p[-1] = 1;
      ++written_before;
    }
    blocks.push_back(p);
  }
  int freed = 0;
  for (char* const p : blocks) {
    free(p);
    EXPECT_EQ(told, ++freed);
  }
  the_misuse_policy.goes_on = false;
  the_misuse_policy.listener = nullptr;
  EXPECT_GT(written_before, 0);
}

TEST_F(Heap, ReallocateKeepsContents) {
  const std::size_t sizes[] = {1,        16,       17,      100,     1000,    1025,   5000,
                               32 * KiB, 33 * KiB, 100'000, 300'000, 2 * MiB, 9 * MiB};
  for (std::size_t from : sizes) {
    for (std::size_t to : sizes) {
      auto* p = static_cast<unsigned char*>(allocate(from));
      for (std::size_t i = 0; i < from; ++i) p[i] = static_cast<unsigned char>(i * 7);
      p = static_cast<unsigned char*>(heap().reallocate(*cache, p, to));
      ASSERT_NE(p, nullptr);
      ASSERT_GE(heap().usable_size(p), to);
      for (std::size_t i = 0; i < std::min(from, to); ++i)
        ASSERT_EQ(p[i], static_cast<unsigned char>(i * 7)) << from << "->" << to;
      std::memset(p, 1, to);
      free(p);
    }
  }
}

TEST_F(Heap, ZeroedMemoryIsZeroedAlsoWhenUsedBefore) {
  for (std::size_t size : {std::size_t{24}, std::size_t{1000}, std::size_t{20'000}, std::size_t{200'000}}) {
    for (int round = 0; round < 50; ++round) {
      auto* p = static_cast<unsigned char*>(heap().allocate_zeroed_slow(*cache, size));
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(p[i], 0);
      std::memset(p, 0xFF, size);
      free(p);
    }
  }
}

TEST_F(Heap, TooMuchIsNull) {
  for (std::size_t size : {SIZE_MAX, SIZE_MAX - 4096, std::size_t{PTRDIFF_MAX}, std::size_t{PTRDIFF_MAX} + 1}) {
    EXPECT_EQ(allocate(size), nullptr);
    EXPECT_EQ(allocate_aligned(size, 64), nullptr);
    EXPECT_EQ(heap().allocate_zeroed_slow(*cache, size), nullptr);
  }
  EXPECT_EQ(allocate_aligned(1, std::size_t{1} << 62), nullptr);
  void* const p = allocate(100'000);
  EXPECT_EQ(heap().reallocate(*cache, p, SIZE_MAX), nullptr);
  free(p);
}

TEST_F(Heap, KnowsWhatIsItsOwn) {
  int local = 0;
  static int global = 0;
  void* const p = allocate(100);
  EXPECT_TRUE(heap().owns(p));
  EXPECT_FALSE(heap().owns(&local));
  EXPECT_FALSE(heap().owns(&global));
  EXPECT_FALSE(heap().owns(nullptr));
  EXPECT_FALSE(heap().owns(reinterpret_cast<void*>(0xDEADBEEFDEADBEEF)));
  EXPECT_EQ(heap().usable_size(&local), 0u);
  free(p);
  void* const large = allocate(10 * MiB);
  EXPECT_TRUE(heap().owns(large));
  EXPECT_FALSE(heap().owns(static_cast<std::byte*>(large) + 5 * MiB)) << "the inside of a block is not a block";
  free(large);
  EXPECT_FALSE(heap().owns(large));
}

TEST_F(Heap, ABorrowedCacheServesThreadsWithoutOne) {
  std::vector<void*> blocks;
  for (std::size_t size = 1; size < 100'000; size += 97) {
    void* const p = heap().with_borrowed([&](auto& borrowed) { return heap().allocate_slow(borrowed, size); });
    ASSERT_NE(p, nullptr);
    std::memset(p, 0x11, size);
    blocks.push_back(p);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 2 == 0) {
      free(blocks[i]);
    } else {
      heap().with_borrowed([&](auto& borrowed) {
        if (!borrowed.push(blocks[i])) heap().deallocate_slow(borrowed, blocks[i]);
      });
    }
  }
}

TEST_F(Heap, OpenCachesAreCountedAndTheirMemoryIsUsedAgain) {
  const std::uint64_t threads = f.threads;
  std::uint64_t metadata = 0;
  for (int i = 0; i < 100; ++i) {
    auto* const other = heap().open_cache();
    EXPECT_EQ(f.threads, threads + 1);
    std::vector<void*> blocks;
    for (int j = 0; j < 1000; ++j) {
      void* const p = other->pop(50);
      blocks.push_back(p != nullptr ? p : heap().allocate_slow(*other, 50));
    }
    heap().close_cache(other);
    for (void* p : blocks) free(p);
    if (i == 10) metadata = f.metadata;
  }
  EXPECT_EQ(f.metadata, metadata);
  EXPECT_EQ(f.threads, threads);
}

}  // namespace
}  // namespace heapwright
