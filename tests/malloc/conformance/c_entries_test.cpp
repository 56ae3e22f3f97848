// malloc, free and what stands beside them in C: zero sizes, the least alignment, usable sizes,
// blocks that do not overlap.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "../support/ordinary_alignment.hpp"
#include "../support/pattern.h"

namespace {

const std::vector<std::size_t>& sizes() {
  static const std::vector<std::size_t> all = [] {
    std::vector<std::size_t> s;
    for (std::size_t n = 1; n <= 2048; ++n) s.push_back(n);
    for (std::size_t power = 4096; power <= 64U << 20; power *= 2) {
      s.insert(s.end(), {power - 1, power, power + 1, power + power / 3});
    }
    return s;
  }();
  return all;
}

TEST(Malloc, BlocksAreAlignedAndLargeEnough) {
  for (const std::size_t size : sizes()) {
    void* const p = std::malloc(size);
    ASSERT_NE(p, nullptr) << size;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % ordinary_alignment(size), 0U) << size;
    EXPECT_GE(::malloc_usable_size(p), size);
    std::free(p);
  }
}

TEST(Malloc, BlocksDoNotOverlap) {
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t size = 0; size <= 3000; size += 7) blocks.emplace_back(std::malloc(size), size);
    for (const std::size_t size : {5000U, 33'000U, 70'000U, 1'000'000U}) blocks.emplace_back(std::malloc(size), size);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) pattern_fill(blocks[i].first, blocks[i].second, i, 0);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(pattern_holds(blocks[i].first, blocks[i].second, i)) << i;
    std::free(blocks[i].first);
  }
}

TEST(Malloc, UsableSizeMayBeUsed) {
  std::vector<void*> blocks;
  for (std::size_t size = 0; size <= 200'000; size += size / 16 + 1) {
    for (int twice = 0; twice < 2; ++twice) blocks.push_back(std::malloc(size));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) pattern_fill(blocks[i], ::malloc_usable_size(blocks[i]), i, 0);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(pattern_holds(blocks[i], ::malloc_usable_size(blocks[i]), i)) << i;
    std::free(blocks[i]);
  }
  EXPECT_EQ(::malloc_usable_size(nullptr), 0U);
}

TEST(Malloc, ZeroSizesAreUniqueBlocks) {
  std::set<void*> blocks;
  const auto add = [&](void* p) {
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(blocks.insert(p).second);
  };
  for (int i = 0; i < 100; ++i) {
    add(std::malloc(0));
    add(std::calloc(0, 8));
    add(std::calloc(8, 0));
    add(std::realloc(nullptr, 0));
    add(::reallocarray(nullptr, 0, 8));
    add(std::aligned_alloc(64, 0));
    add(::memalign(64, 0));
    add(::valloc(0));
    add(::pvalloc(0));
    void* p = nullptr;
    EXPECT_EQ(::posix_memalign(&p, 64, 0), 0);
    add(p);
  }
  for (void* p : blocks) std::free(p);
}

TEST(Malloc, FreeOfNullDoesNothing) {
  std::free(nullptr);
  EXPECT_EQ(::malloc_usable_size(nullptr), 0U);
}

TEST(Malloc, SizedFreesAndCfree) {
  const auto free_sized = reinterpret_cast<void (*)(void*, std::size_t)>(::dlsym(RTLD_DEFAULT, "free_sized"));
  const auto free_aligned_sized =
      reinterpret_cast<void (*)(void*, std::size_t, std::size_t)>(::dlsym(RTLD_DEFAULT, "free_aligned_sized"));
  const auto cfree = reinterpret_cast<void (*)(void*)>(::dlsym(RTLD_DEFAULT, "cfree"));
  ASSERT_TRUE(free_sized != nullptr && free_aligned_sized != nullptr && cfree != nullptr);
  free_sized(nullptr, 0);
  free_aligned_sized(nullptr, 64, 0);
  cfree(nullptr);
  // Freed memory is used again: the block that comes next is one that was freed before.
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{300'000}}) {
    const std::size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
    for (int i = 0; i < 1000; ++i) {
      free_sized(std::malloc(size), size);
      free_aligned_sized(std::aligned_alloc(64, size), 64, size);
      cfree(std::malloc(size));
    }
    EXPECT_LE(::mallinfo2().uordblks + ::mallinfo2().hblkhd, before + 64 * 1024) << size;
  }
}

}  // namespace
