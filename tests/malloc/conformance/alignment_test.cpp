// Every power of two up to 1 GiB is an alignment, for any size; the blocks may be written whole,
// and freed and used again.
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include "../support/ordinary_alignment.hpp"
#include "../support/pattern.h"

namespace {

void expect_good(void* p, std::size_t alignment, std::size_t size) {
  ASSERT_NE(p, nullptr) << size << " aligned to " << alignment;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0U) << size << " aligned to " << alignment;
  EXPECT_GE(::malloc_usable_size(p), size);
  pattern_fill(p, size, alignment + size, 0);
}

TEST(Alignment, EveryPowerOfTwoWithEverySize) {
  const std::size_t sizes[] = {0, 1, 15, 16, 100, 1000, 1024, 4096, 10'000, 32'768, 32'769, 100'000, 1'000'000};
  for (std::size_t alignment = 8; alignment <= std::size_t{1} << 30; alignment *= 2) {
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (const std::size_t size : sizes) {
      void* p = nullptr;
      ASSERT_EQ(::posix_memalign(&p, alignment, size), 0);
      expect_good(p, alignment, size);
      blocks.emplace_back(p, size);
      expect_good(p = std::aligned_alloc(alignment, size), alignment, size);
      blocks.emplace_back(p, size);
      expect_good(p = ::memalign(alignment, size), alignment, size);
      blocks.emplace_back(p, size);
      if (alignment >= std::size_t{1} << 28 && size > 1000) break;  // each takes twice its alignment in address space
    }
    for (const auto& [p, size] : blocks) {
      EXPECT_TRUE(pattern_holds(p, size, alignment + size)) << size << " aligned to " << alignment;
      std::free(p);
    }
  }
}

TEST(Alignment, LargeBlocksWithLargeAlignments) {
  for (std::size_t alignment = 1 << 12; alignment <= 1 << 23; alignment *= 2) {
    for (const std::size_t size : {std::size_t{3} << 20, alignment, alignment + 1, alignment * 2 - 1}) {
      void* const p = std::aligned_alloc(alignment, size);
      expect_good(p, alignment, size);
      EXPECT_TRUE(pattern_holds(p, size, alignment + size));
      std::free(p);
    }
  }
}

TEST(Alignment, OfPages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, page, page + 1, 10 * page}) {
    void* const v = ::valloc(size);
    void* const pv = ::pvalloc(size);
    expect_good(v, page, size);
    expect_good(pv, page, (size + page - 1) / page * page);
    std::free(v);
    std::free(pv);
  }
  void* const least = ::pvalloc(0);
  EXPECT_GE(::malloc_usable_size(least), page) << "pvalloc of nothing is a page";
  std::free(least);
}

TEST(Alignment, OfEveryOrdinaryBlockIsSixteen) {
  for (std::size_t size = 0; size < 10'000; ++size) {
    void* const p = std::malloc(size);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % ordinary_alignment(size), 0U) << size;
    std::free(p);
  }
}

}  // namespace
