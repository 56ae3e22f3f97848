// realloc keeps what was in the block, from any size to any other: within a size class, between
// classes, from small to large and back, in place and moved.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "../support/ordinary_alignment.hpp"
#include "../support/pattern.h"

namespace {

#ifdef HEAPWRIGHT_TEST_EMULATED  // bytes are slow there
constexpr std::size_t largest_pair = 1 << 20;
#else
constexpr std::size_t largest_pair = 10 << 20;
#endif

std::vector<std::size_t> matrix() {
  std::vector<std::size_t> sizes{1, 17, 100, 1023, 1024, 1025, 3000};
  for (std::size_t size = 16; size <= 8U << 20; size *= 4) sizes.insert(sizes.end(), {size, size + size / 2 + 1});
  for (const std::size_t edge : {32U << 10, 64U << 10, 256U << 10})
    sizes.insert(sizes.end(), {edge - 1, edge, edge + 1});
  return sizes;
}

TEST(Realloc, KeepsContentsFromAnySizeToAnyOther) {
  const std::vector<std::size_t> sizes = matrix();
  for (const std::size_t from : sizes) {
    for (const std::size_t to : sizes) {
      if (from + to > largest_pair) continue;  // the largest ones are below
      void* const p = std::malloc(from);
      ASSERT_NE(p, nullptr);
      pattern_fill(p, from, from, 0);
      void* const q = std::realloc(p, to);
      ASSERT_NE(q, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(q) % ordinary_alignment(to), 0U);
      EXPECT_GE(::malloc_usable_size(q), to);
      EXPECT_TRUE(pattern_holds(q, from < to ? from : to, from)) << from << " to " << to;
      pattern_fill(q, to, to, 0);
      EXPECT_TRUE(pattern_holds(q, to, to));
      std::free(q);
    }
  }
}

TEST(Realloc, KeepsContentsToTheLargestSizes) {
  std::size_t size = 16;
  void* p = std::malloc(size);
  pattern_fill(p, size, 5, 0);
  while (size < 64U << 20) {
    p = std::realloc(p, size * 2);
    ASSERT_NE(p, nullptr);
    ASSERT_TRUE(pattern_holds(p, size, 5)) << size;
    pattern_fill(p, size * 2, 5, size);
    size *= 2;
  }
  while (size > 16) {
    size /= 2;
    p = std::realloc(p, size);
    ASSERT_TRUE(pattern_holds(p, size, 5)) << size;
  }
  std::free(p);
}

TEST(Realloc, KeepsNeighbours) {
  std::vector<void*> blocks(64);
  for (std::size_t i = 0; i < blocks.size(); ++i) pattern_fill(blocks[i] = std::malloc(100'000), 100'000, i, 0);
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    const std::size_t to = i % 4 == 0 ? 40'000 : 300'000;
    blocks[i] = std::realloc(blocks[i], to);
    pattern_fill(blocks[i], to, i, 0);
  }
  for (std::size_t i = 1; i < blocks.size(); i += 2) EXPECT_TRUE(pattern_holds(blocks[i], 100'000, i));
  for (void* p : blocks) std::free(p);
}

TEST(Realloc, OfAlignedBlocks) {
  for (const std::size_t alignment : {64U, 4096U, 65'536U, 1U << 21}) {
    for (const std::size_t to : {10U, 5000U, 500'000U}) {
      void* const p = std::aligned_alloc(alignment, 3000);
      pattern_fill(p, 3000, alignment, 0);
      void* const q = std::realloc(p, to);
      ASSERT_NE(q, nullptr);
      EXPECT_TRUE(pattern_holds(q, to < 3000 ? to : 3000, alignment));
      std::free(q);
    }
  }
}

TEST(Realloc, ToZeroFreesAsInGlibc) {
  const std::size_t before = ::mallinfo2().uordblks;
  for (int i = 0; i < 100'000; ++i) EXPECT_EQ(std::realloc(std::malloc(500), 0), nullptr);
  EXPECT_LT(::mallinfo2().uordblks, before + (1U << 20));
}

TEST(Realloc, ShrinkingGivesTheRestBack) {
  std::vector<void*> blocks(50);
  for (void*& p : blocks) p = std::realloc(std::malloc(2U << 20), 1000);
  EXPECT_LT(::mallinfo2().uordblks + ::mallinfo2().hblkhd, 50U << 20);
  for (void* p : blocks) std::free(p);
}

}  // namespace
