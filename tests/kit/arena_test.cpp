#include <heapwright/allocator/stack_arena.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "support/model.hpp"
#include "support/strict_source.hpp"

namespace heapwright {
namespace {

using testing::model;
using testing::strict_source;
using shared = upstream<strict_source>;

static_assert(allocator<arena<>> && can_own<arena<>> && can_resize<arena<>> && can_reset<arena<>> &&
              can_trim<arena<>> && has_stats<arena<>>);

layout any_layout(auto& m) {
  return {m.random(10) == 0 ? m.random(5000) : m.random(200), std::size_t{1} << m.random(m.random(4) == 0 ? 12 : 5)};
}

template <take_back TakeBack>
void keeps_every_block_apart() {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    strict_source source;
    arena<shared, TakeBack> a{source};
    model m(a, seed);
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 1000; ++i) {
        switch (m.random(4)) {
          case 0: m.deallocate_any(); break;
          case 1: m.resize_any(1 + m.random(300)); break;
          default: ASSERT_NE(m.allocate(any_layout(m)), nullptr);
        }
      }
      EXPECT_GE(a.stats().in_use, m.bytes());
      EXPECT_EQ(a.stats().held, source.held());
      m.forget_all();
      a.reset();
      EXPECT_EQ(a.stats().in_use, 0U);
      EXPECT_EQ(source.ranges(), 1U) << "one chunk stays";
    }
  }
}

TEST(Arena, KeepsEveryBlockApart) {
  keeps_every_block_apart<take_back::latest>();
  keeps_every_block_apart<take_back::nothing>();
}

TEST(Arena, TakesTheLatestBlockBack) {
  arena<> a;
  for (const std::size_t size : {1, 7, 8, 13, 100}) {
    (void)a.allocate({3, 1});
    const std::size_t before = a.stats().in_use;
    void* const p = a.allocate({size, 1});
    a.deallocate(p, {size, 1});
    EXPECT_EQ(a.stats().in_use, before) << size;
    EXPECT_EQ(a.allocate({size, 1}), p) << size;
  }
}

TEST(Arena, TwoDefaultAlignedBlocksFreedInReverseOrderLeaveNothingInUse) {
  alignas(16) std::array<std::byte, 4096> memory;
  arena<no_source> a{memory};
  for (int round = 0; round < 10'000; ++round) {
    void* const x = a.allocate({5});
    void* const y = a.allocate({5});
    ASSERT_TRUE(x != nullptr && y != nullptr) << round;
    a.deallocate(y, {5});
    a.deallocate(x, {5});
    ASSERT_EQ(a.stats().in_use, 0U) << round;
  }
}

/// Allocates `n` blocks of random layouts and frees them in reverse order.
template <class A>
void push_and_pop(A& a, std::mt19937& random, int n) {
  struct block {
    void* at;
    layout of;
  };
  std::vector<block> stack;
  const std::size_t before = a.stats().in_use;
  while (n > 0 || !stack.empty()) {
    if (n > 0 && random() % 3 != 0) {
      const layout l{random() % 200, std::size_t{1} << random() % 10};
      stack.push_back({a.allocate(l), l});
      ASSERT_NE(stack.back().at, nullptr);
      std::memset(stack.back().at, 0xFF, l.size);  // where records between blocks would be overwritten
      --n;
    } else if (!stack.empty()) {
      a.deallocate(stack.back().at, stack.back().of);
      stack.pop_back();
    }
  }
  EXPECT_EQ(a.stats().in_use, before);
}

TEST(Arena, FreesInReverseOrderLeaveNothingInUseWhateverTheLayouts) {
  std::mt19937 random(1);
  strict_source source;
  std::array<std::byte, 2000> memory;
  for (int round = 0; round < 100; ++round) {
    arena<shared> drawn{source};
    push_and_pop(drawn, random, 500);
    EXPECT_EQ(drawn.stats().in_use, 0U);
    arena<shared> buffered{std::span(memory).subspan(random() % 16), source};
    push_and_pop(buffered, random, 500);
    EXPECT_EQ(buffered.stats().in_use, 0U);
    EXPECT_TRUE(buffered.in_buffer(buffered.allocate({1, 1}))) << "the buffer is used again";
  }
  EXPECT_EQ(source.held(), 0U);
}

TEST(Arena, FreesAboveALiveBlockGiveBackWhatLiesAboveIt) {
  std::mt19937 random(2);
  arena<> a;
  ASSERT_NE(a.allocate({3, 1}), nullptr);
  const std::size_t in_use = a.stats().in_use;
  for (int round = 0; round < 100; ++round) push_and_pop(a, random, 300);
  EXPECT_EQ(a.stats().in_use, in_use);
}

TEST(Arena, AsksTheSourceOnceWhereAProgramAllocatesAndFreesAtTheEndOfAChunk) {
  strict_source source;
  std::array<std::byte, 64> memory;
  arena<shared> a{memory, source};
  ASSERT_NE(a.allocate({64, 8}), nullptr);
  for (int i = 0; i < 1000; ++i) a.deallocate(a.allocate({100, 8}), {100, 8});
  EXPECT_EQ(source.requests(), 1U);
  EXPECT_EQ(a.stats().in_use, 64U);
  const std::size_t held = source.held();
  EXPECT_EQ(a.trim(), held) << "the chunk that the frees have left";
  EXPECT_EQ(source.held(), 0U);
}

TEST(Arena, ARewindIsRightAfterFreesOfOlderBlocks) {
  strict_source source;
  std::array<std::byte, 256> memory;
  arena<shared> a{memory, source};
  void* const x = a.allocate({5, 8});
  void* const y = a.allocate({5, 64});
  void* const spilled = a.allocate({1000, 8});
  const auto m = a.mark();
  const std::size_t in_use = a.stats().in_use;
  a.deallocate(spilled, {1000, 8});
  a.deallocate(y, {5, 64});
  a.deallocate(x, {5, 8});
  ASSERT_NE(a.allocate({3000, 32}), nullptr);
  a.rewind(m);
  EXPECT_EQ(a.stats().in_use, in_use);
  EXPECT_TRUE(a.owns(x) && a.owns(spilled));
  ASSERT_NE(a.allocate({3000, 32}), nullptr);
  a.rewind(m);
  EXPECT_EQ(a.stats().in_use, in_use) << "a mark serves more than one rewind";
}

TEST(Arena, FreeOfNullDoesNothing) {
  arena<> a;
  a.deallocate(nullptr, {8, 8});
  void* const p = a.allocate({8, 8});
  a.deallocate(nullptr, {8, 8});
  EXPECT_TRUE(a.owns(p));
  EXPECT_EQ(a.stats().in_use, 8U);
}

TEST(Arena, TakesNothingBackWhereToldSo) {
  arena<upstream_malloc, take_back::nothing> a;
  void* const p = a.allocate({32, 8});
  a.deallocate(p, {32, 8});
  EXPECT_EQ(a.stats().in_use, 32U);
  EXPECT_TRUE(a.owns(p));
  EXPECT_NE(a.allocate({32, 8}), p);
  a.reset();
  EXPECT_EQ(a.stats().in_use, 0U);
}

TEST(Arena, OlderBlocksStayUntilTheReset) {
  arena<> a;
  void* const first = a.allocate({32, 8});
  void* const second = a.allocate({32, 8});
  a.deallocate(first, {32, 8});
  EXPECT_TRUE(a.owns(first));
  EXPECT_NE(a.allocate({32, 8}), first);
  EXPECT_TRUE(a.owns(second));
  a.reset();
  EXPECT_FALSE(a.owns(second));
}

TEST(Arena, UsesTheBufferFirstAndTellsWhatDidNotFit) {
  strict_source source;
  std::array<std::byte, 1001> memory;
  {
    arena<shared> a{std::span(memory).subspan(1), source};
    void* const inside = a.allocate({400, 8});
    EXPECT_TRUE(a.in_buffer(inside));
    EXPECT_EQ(source.requests(), 0U);
    void* const spilled = a.allocate({700, 8});
    ASSERT_NE(spilled, nullptr);
    EXPECT_FALSE(a.in_buffer(spilled));
    EXPECT_TRUE(a.owns(inside) && a.owns(spilled));
    EXPECT_EQ(a.stats().held, 1000 + source.held());
    a.reset();
    EXPECT_FALSE(a.owns(inside) || a.owns(spilled));
    EXPECT_FALSE(a.in_buffer(a.allocate({8, 8}))) << "the larger chunk is used from now on";
    EXPECT_EQ(a.trim(), 0U) << "it is in use";
    a.reset();
    EXPECT_GT(a.trim(), 0U);
    EXPECT_EQ(source.held(), 0U);
    EXPECT_EQ(a.allocate({400, 8}), inside);
  }
}

TEST(Arena, BufferAloneEndsWithNull) {
  alignas(8) std::array<std::byte, 64> memory;
  arena<no_source> a{memory};
  std::size_t blocks = 0;
  while (a.allocate({8, 8}) != nullptr) ++blocks;
  EXPECT_EQ(blocks, 8U);
  EXPECT_EQ(a.allocate({1, 1}), nullptr);
  EXPECT_EQ(a.stats().in_use, 64U);

  arena<no_source> nothing{std::span<std::byte>{}};
  EXPECT_EQ(nothing.allocate({1, 1}), nullptr);
  EXPECT_EQ(nothing.allocate({0, 1}), nullptr);
}

TEST(Arena, RewindsToAMark) {
  strict_source source;
  std::array<std::byte, 256> memory;
  arena<shared> a{memory, source};
  const auto empty = a.mark();
  void* const first = a.allocate({100, 8});
  const auto in_buffer = a.mark();
  void* const later = a.allocate({50, 8});
  (void)a.allocate({2000, 8});
  const auto in_chunk = a.mark();
  const std::size_t held = source.held();
  void* const in_the_chunk = a.allocate({10, 8});
  for (int i = 0; i < 10; ++i) (void)a.allocate({50'000, 8});

  a.rewind(in_chunk);
  EXPECT_EQ(source.held(), held);
  EXPECT_EQ(a.allocate({10, 8}), in_the_chunk);
  a.rewind(in_buffer);
  EXPECT_EQ(source.held(), 0U);
  EXPECT_TRUE(a.owns(first));
  EXPECT_FALSE(a.owns(later));
  EXPECT_EQ(a.allocate({50, 8}), later);
  a.rewind(empty);
  EXPECT_EQ(a.stats().in_use, 0U);
  EXPECT_EQ(a.allocate({100, 8}), first);
}

TEST(Arena, RewindsToAMarkMadeBeforeAnyMemory) {
  strict_source source;
  arena<shared> a{source};
  const auto empty = a.mark();
  ASSERT_NE(a.allocate({100, 8}), nullptr);
  a.rewind(empty);
  EXPECT_EQ(source.held(), 0U);
  EXPECT_NE(a.allocate({100, 8}), nullptr);
}

TEST(Arena, LatestBlockGrowsInPlace) {
  alignas(8) std::array<std::byte, 128> memory;
  arena<no_source> a{memory};
  void* const p = a.allocate({16, 8});
  EXPECT_TRUE(a.try_resize(p, {16, 8}, {128, 8}));
  EXPECT_FALSE(a.try_resize(p, {128, 8}, {129, 8}));
  EXPECT_FALSE(a.try_resize(p, {128, 8}, {SIZE_MAX, 8}));
  EXPECT_TRUE(a.try_resize(p, {128, 8}, {10, 8}));
  EXPECT_EQ(a.stats().in_use, 16U);
  (void)a.allocate({8, 8});
  EXPECT_FALSE(a.try_resize(p, {10, 8}, {17, 8})) << "another block lies behind it";
  EXPECT_TRUE(a.try_resize(p, {10, 8}, {4, 8}));
}

TEST(Arena, RefusesWhatNobodyHas) {
  strict_source source;
  arena<shared> a{source};
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 7, SIZE_MAX - 64, static_cast<std::size_t>(PTRDIFF_MAX) + 1}) {
    EXPECT_EQ(a.allocate({size, 1}), nullptr);
    EXPECT_EQ(a.allocate({size, 64}), nullptr);
  }
  EXPECT_EQ(source.requests(), 0U);
}

TEST(Arena, AFailingSourceLeavesItAsItWas) {
  for (std::size_t allowed = 0; allowed < 6; ++allowed) {
    strict_source source;
    arena<shared> a{source};
    model m(a);
    source.allow(allowed);
    while (m.allocate({100, 8}) != nullptr) {
    }
    m.check_all();
    const arena_stats s = a.stats();
    EXPECT_EQ(a.allocate({100'000, 8}), nullptr);
    EXPECT_EQ(a.stats().in_use, s.in_use);
    EXPECT_EQ(a.stats().held, source.held());
    source.allow(SIZE_MAX);
    EXPECT_NE(m.allocate({100'000, 8}), nullptr);
    m.forget_all();
  }
}

TEST(Arena, AsksForLessWhenALargeChunkIsRefused) {
  struct meagre {
    void* allocate(layout l) noexcept { return l.size > 2000 ? nullptr : upstream_malloc{}.allocate(l); }
    void deallocate(void* p, layout l) noexcept { upstream_malloc{}.deallocate(p, l); }
  };
  arena<meagre> a;
  EXPECT_NE(a.allocate({1000, 8}), nullptr);
  EXPECT_EQ(a.allocate({2000, 8}), nullptr);
}

TEST(Arena, ChunksDoubleUpToAMebibyte) {
  strict_source source;
  arena<shared> a{source};
  for (int i = 0; i < 100'000; ++i) ASSERT_NE(a.allocate({64, 8}), nullptr);
  EXPECT_LE(source.requests(), 16U);
  EXPECT_LE(source.held(), 6'400'000U + 2 * MiB);
}

TEST(StackArena, LivesInItself) {
  stack_arena<1024> a;
  const auto* const begin = reinterpret_cast<std::byte*>(&a);
  auto* const p = static_cast<std::byte*>(a.allocate({1000, 16}));
  EXPECT_TRUE(p >= begin && p + 1000 <= begin + sizeof a);
  EXPECT_TRUE(a.in_buffer(p));
  void* const spilled = a.allocate({1000, 16});
  EXPECT_NE(spilled, nullptr);
  EXPECT_FALSE(a.in_buffer(spilled));
  stack_arena<64, no_source> alone;
  EXPECT_NE(alone.allocate({64, 8}), nullptr);
  EXPECT_EQ(alone.allocate({1, 1}), nullptr);
}

#ifdef HEAPWRIGHT_HAS_ASAN
TEST(Arena, PoisonsWhatIsNotHandedOut) {
  std::array<std::byte, 256> memory;
  {
    arena<no_source> a{memory};
    auto* const p = static_cast<std::byte*>(a.allocate({20, 8}));
    EXPECT_FALSE(__asan_address_is_poisoned(p + 19));
    EXPECT_TRUE(__asan_address_is_poisoned(p + 24));
    a.deallocate(p, {20, 8});
    EXPECT_TRUE(__asan_address_is_poisoned(p));
    (void)a.allocate({100, 8});
    a.reset();
    EXPECT_TRUE(__asan_address_is_poisoned(p + 50));
  }
  EXPECT_FALSE(__asan_address_is_poisoned(memory.data() + 50));
}
#endif

TEST(Arena, DoesNotOwnWhatAlignmentCutOff) {
  alignas(8) std::byte memory[64];
  const arena<no_source> a{std::span(memory).subspan(1)};
  EXPECT_FALSE(a.owns(memory + 1));
  EXPECT_FALSE(a.owns(memory + 8));
}

TEST(ArenaDeathTest, MarkFromBeforeATrim) {
  arena<> a;
  static_cast<void>(a.allocate({8, 8}));
  a.reset();
  const auto mark = a.mark();
  EXPECT_GT(a.trim(), 0U);
  EXPECT_DEATH(a.rewind(mark), "heapwright: rewind to a mark that is void: 0x");
}

TEST(ArenaDeathTest, ForeignPointer) {
  if constexpr (!checks_callers) GTEST_SKIP();
  arena<> a;
  int local = 0;
  EXPECT_DEATH(a.deallocate(&local, layout::of<int>()), "heapwright: free of a foreign pointer: 0x");
}

}  // namespace
}  // namespace heapwright
