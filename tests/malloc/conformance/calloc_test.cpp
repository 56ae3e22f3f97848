// calloc gives zeroes, also where the memory was somebody's before: freed small blocks, runs of
// pages freed and joined, memory given back to the system in part.
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "../support/pattern.h"
#include "../support/random.hpp"

namespace {

TEST(Calloc, FreshMemoryIsZero) {
  for (std::size_t size = 1; size <= 16U << 20; size += size / 3 + 1) {
    void* const p = std::calloc(1, size);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(all_zero(p, size)) << size;
    std::free(p);
  }
}

TEST(Calloc, UsedMemoryIsZeroAgain) {
  test::random random(11);
  std::vector<std::pair<void*, std::size_t>> blocks(300);
  for (int round = 0; round < 20; ++round) {
    for (auto& [p, size] : blocks) {
      if (random.below(3) == 0) continue;
      std::free(p);
      size = random.size(round % 2 == 0 ? 12 : 20);
      const bool zeroed = random.below(2) == 0;
      p = zeroed ? std::calloc(size, 1) : std::malloc(size);
      ASSERT_NE(p, nullptr);
      if (zeroed) {
        ASSERT_TRUE(all_zero(p, size)) << size;
      }
      pattern_fill(p, ::malloc_usable_size(p), round, 0);
    }
    if (round % 5 == 4) ::malloc_trim(0);
  }
  for (auto& [p, size] : blocks) std::free(p);
}

TEST(Calloc, ZeroAfterReallocToldTheHeapOtherwise) {
  // A fresh run reads as zero until it is written; growing and shrinking must not let it be taken
  // for fresh again.
  for (int i = 0; i < 20; ++i) {
    void* p = std::calloc(1, 400'000);
    pattern_fill(p, 400'000, 1, 0);
    p = std::realloc(p, 900'000);
    pattern_fill(p, 900'000, 2, 0);
    p = std::realloc(p, 100'000);
    void* const q = std::calloc(1, 700'000);
    EXPECT_TRUE(all_zero(q, 700'000));
    pattern_fill(q, 700'000, 3, 0);
    std::free(p);
    std::free(q);
  }
}

}  // namespace
