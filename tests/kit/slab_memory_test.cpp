#include <heapwright/source/slab_memory.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <heapwright/allocator/slab.hpp>

namespace heapwright {
namespace {

constexpr layout range{16 * KiB - slab_memory::header_bytes, 16 * KiB};

/// Writes all of each range: what overlaps would lose its number.
void expect_apart(const std::vector<void*>& ranges, layout of) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_NE(ranges[i], nullptr);
    EXPECT_EQ(address_of(ranges[i]) % of.alignment, 0U);
    std::memset(ranges[i], static_cast<int>(i), of.size);
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto* const bytes = static_cast<const unsigned char*>(ranges[i]);
    EXPECT_TRUE(std::all_of(bytes, bytes + of.size, [&](unsigned char b) { return b == i; }));
  }
}

TEST(SlabMemory, RangesAreAlignedAndApart) {
  slab_memory source;
  for (const layout of :
       {range, layout{16 * KiB, 16 * KiB}, layout{1000, 1 * KiB}, layout{64 * KiB, 64 * KiB}, layout{1, 1}}) {
    std::vector<void*> ranges(12);
    for (void*& p : ranges) p = source.allocate(of);
    expect_apart(ranges, of);
    for (void* const p : ranges) source.deallocate(p, of);
  }
}

TEST(SlabMemory, WhatComesBackServesAgain) {
  if constexpr (poisons) GTEST_SKIP() << "AddressSanitizer keeps freed blocks for a while";
  slab_memory source;
  std::set<void*> seen;
  for (int i = 0; i < 1000; ++i) {
    void* const p = source.allocate(range);
    ASSERT_NE(p, nullptr);
    seen.insert(p);
    source.deallocate(p, range);
  }
  EXPECT_LE(seen.size(), 8U);
}

#ifdef __GLIBC__
// glibc's malloc cuts an aligned block of 2^n bytes out of twice as many, and half of each is left
// over.
TEST(SlabMemory, RangesOfMallocLieSideBySide) {
  if constexpr (poisons) GTEST_SKIP() << "AddressSanitizer puts red zones between blocks";
  slab_memory source;
  std::set<std::uintptr_t> ranges;
  while (ranges.size() < 200) ranges.insert(address_of(source.allocate(range)));
  const auto beside = std::count_if(ranges.begin(), ranges.end(),
                                    [&](std::uintptr_t p) { return ranges.contains(p + range.alignment); });
  EXPECT_GE(beside, 150) << "of 200; some go into gaps that the heap has from before";
  for (const std::uintptr_t p : ranges) source.deallocate(reinterpret_cast<void*>(p), range);
}

#endif

TEST(SlabMemory, ThreadsShareTheReserve) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      slab_memory source;
      for (int i = 0; i < 5000; ++i) {
        void* ranges[2];
        for (void*& p : ranges) {
          p = source.allocate(range);
          *static_cast<int*>(p) = t;
        }
        for (void* const p : ranges) {
          EXPECT_EQ(*static_cast<int*>(p), t);
          source.deallocate(p, range);
        }
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST(SlabMemory, ASlabLeavesItsEndToTheSource) {
  for (const std::size_t size : {1U, 16U, 24U, 112U, 1000U, 5000U}) {
    slab<> s{{size, 8}};
    std::vector<void*> blocks;
    while (s.stats().slabs < 8) {
      blocks.push_back(s.allocate());
      ASSERT_NE(blocks.back(), nullptr);
      std::memset(blocks.back(), 0xCC, size);
      const std::size_t slab_bytes = s.stats().held / s.stats().slabs + slab_memory::header_bytes;
      EXPECT_LE(address_of(blocks.back()) % slab_bytes + size, slab_bytes - slab_memory::header_bytes);
    }
    for (void* const p : blocks) s.deallocate(p);
    EXPECT_EQ(s.stats().in_use, 0U);
    EXPECT_EQ(s.trim() % 8, 0U);
    EXPECT_EQ(s.stats().held, 0U);
  }
}

}  // namespace
}  // namespace heapwright
