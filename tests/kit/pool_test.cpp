#include <heapwright/allocator/object_pool.hpp>
#include <heapwright/allocator/pool.hpp>

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

#include "support/model.hpp"
#include "support/strict_source.hpp"

namespace heapwright {
namespace {

using testing::model;
using testing::strict_source;
using shared = upstream<strict_source>;

static_assert(allocator<pool<>> && can_own<pool<>> && can_deallocate_unsized<pool<>> && has_usable_size<pool<>> &&
              can_reset<pool<>> && can_trim<pool<>> && has_stats<pool<>>);

constexpr layout layouts[] = {{1, 1}, {8, 8}, {24, 8}, {40, 16}, {100, 4}, {64, 64}, {4096, 4096}, {100'000, 8}};

TEST(Pool, KeepsEveryBlockApart) {
  for (const layout of : layouts) {
    strict_source source;
    pool<shared> p{of, source};
    model m(p);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 3000; ++i) {
        if (m.random(5) < 3) {
          ASSERT_NE(m.allocate(of), nullptr);
        } else {
          m.deallocate_any();
        }
      }
      EXPECT_EQ(p.stats().in_use, m.blocks() * p.usable_size(nullptr));
      EXPECT_EQ(p.stats().held, source.held());
      m.check_all();
      if (round == 1) {
        m.forget_all();
        p.reset();
        EXPECT_EQ(p.stats().in_use, 0U);
      }
    }
    m.deallocate_all();
    EXPECT_EQ(p.stats().in_use, 0U);
    const std::size_t held = source.held();
    EXPECT_EQ(p.trim(), held) << "all of it";
    EXPECT_EQ(source.held(), 0U);
    EXPECT_NE(m.allocate(of), nullptr) << "goes on after it";
    m.forget_all();
  }
}

TEST(Pool, TrimGivesBackWholeChunksAndLosesNoBlock) {
  strict_source source;
  pool<shared> p{{32, 8}, source};
  model m(p);
  for (int round = 0; round < 20; ++round) {
    while (source.ranges() < 12) m.allocate({32, 8});
    const std::size_t left = m.random(300);
    while (m.blocks() > left) m.deallocate_any();
    const std::size_t before = source.held();
    const std::size_t trimmed = p.trim();
    EXPECT_EQ(trimmed, before - source.held());
    EXPECT_EQ(p.stats().held, source.held());
    EXPECT_EQ(p.stats().in_use, m.blocks() * 32);
    m.check_all();
  }
  m.deallocate_all();
}

TEST(Pool, ResetUsesItsChunksAgain) {
  strict_source source;
  pool<shared> p{{48, 8}, source};
  const auto fill = [&] {
    std::set<void*> blocks;
    for (int i = 0; i < 10'000; ++i) blocks.insert(p.allocate());
    EXPECT_EQ(blocks.size(), 10'000U);
    return blocks;
  };
  const auto first = fill();
  const std::size_t requests = source.requests();
  p.reset();
  EXPECT_EQ(fill(), first);
  EXPECT_EQ(source.requests(), requests);
}

TEST(Pool, NewBlocksLieInARow) {
  pool<> p{{24, 8}};
  auto* before = static_cast<std::byte*>(p.allocate());
  for (int i = 0; i < 2000; ++i) {
    auto* const next = static_cast<std::byte*>(p.allocate());
    ASSERT_EQ(next, before + 24);
    before = next;
  }
}

TEST(Pool, PoolsShareChunks) {
  strict_source source;
  using stock = pool<shared>;
  stock chunks{{64 * KiB, 64 * KiB}, source};
  pool<upstream<stock>> nodes{{24, 8}, chunks};
  pool<upstream<stock>> names{{80, 16}, chunks};
  std::vector<void*> blocks;
  for (int i = 0; i < 100'000; ++i) blocks.push_back(nodes.allocate());
  const std::size_t peak = source.held();
  for (void* p : blocks) nodes.deallocate(p);
  EXPECT_GT(nodes.trim(), 2 * MiB);
  for (int i = 0; i < 20'000; ++i) ASSERT_NE(names.allocate(), nullptr);
  EXPECT_EQ(source.held(), peak) << "the memory of one serves the other";
}

TEST(Pool, RefusesOtherLayouts) {
  pool<> p{{40, 8}};
  EXPECT_EQ(p.allocate({41, 8}), nullptr);
  EXPECT_EQ(p.allocate({8, 16}), nullptr);
  void* const b = p.allocate({3, 1});
  EXPECT_NE(b, nullptr);
  EXPECT_TRUE(p.owns(b));
  int local;
  EXPECT_FALSE(p.owns(&local));
  EXPECT_FALSE(p.owns(nullptr));
  p.deallocate(b, {3, 1});
}

TEST(Pool, AFailingSourceLeavesItAsItWas) {
  for (std::size_t allowed = 0; allowed < 4; ++allowed) {
    strict_source source;
    source.allow(allowed);
    pool<shared> p{{64, 8}, source};
    model m(p);
    while (m.allocate({64, 8}) != nullptr) {
    }
    EXPECT_EQ(source.ranges(), allowed);
    EXPECT_EQ(p.allocate(), nullptr);
    if (m.deallocate_any()) {
      EXPECT_NE(m.allocate({64, 8}), nullptr);
    }
    m.check_all();
    source.allow(SIZE_MAX);
    EXPECT_NE(m.allocate({64, 8}), nullptr);
    m.forget_all();
  }
}

struct counted {
  static inline int alive = 0;
  explicit counted(int v) : value(v) {
    if (v < 0) throw std::invalid_argument("negative");
    ++alive;
  }
  counted(const counted&) = delete;
  ~counted() { --alive; }
  int value;
};

TEST(ObjectPool, MakesAndDestroys) {
  strict_source source;
  object_pool<counted, shared> p{source};
  counted* const one = p.make(1);
  counted* const two = p.make(2);
  EXPECT_EQ(one->value + two->value, 3);
  EXPECT_EQ(counted::alive, 2);
  p.destroy(one);
  p.destroy(two);
  p.destroy(nullptr);
  EXPECT_EQ(counted::alive, 0);
  EXPECT_EQ(p.stats().in_use, 0U);
}

TEST(ObjectPool, AThrowingConstructorLosesNoBlock) {
  object_pool<counted> p;
  EXPECT_THROW((void)p.make(-1), std::invalid_argument);
  EXPECT_EQ(p.stats().in_use, 0U);
  EXPECT_EQ(counted::alive, 0);
}

TEST(ObjectPool, OverAlignedObjects) {
  struct alignas(256) wide {
    char c;
  };
  object_pool<wide> p;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(is_aligned(p.make(), 256));
}

#ifdef HEAPWRIGHT_HAS_ASAN
TEST(Pool, PoisonsFreeBlocks) {
  pool<> p{{64, 8}};
  auto* const b = static_cast<std::byte*>(p.allocate());
  EXPECT_FALSE(__asan_address_is_poisoned(b) || __asan_address_is_poisoned(b + 63));
  EXPECT_TRUE(__asan_address_is_poisoned(b + 64));
  p.deallocate(b);
  EXPECT_TRUE(__asan_address_is_poisoned(b) && __asan_address_is_poisoned(b + 63));
  (void)p.trim();
}
#endif

class PoolDeathTest : public ::testing::Test {
  void SetUp() override {
    if constexpr (!checks_callers) GTEST_SKIP();
  }
};

TEST_F(PoolDeathTest, DoubleFree) {
  pool<> p{{40, 8}};
  void* const b = p.allocate();
  (void)p.allocate();
  p.deallocate(b);
  EXPECT_DEATH(p.deallocate(b), "heapwright: double free: 0x");
}

TEST_F(PoolDeathTest, ForeignPointers) {
  pool<> p{{40, 8}};
  auto* const b = static_cast<std::byte*>(p.allocate());
  alignas(64) std::byte foreign[256];
  EXPECT_DEATH(p.deallocate(foreign + 64), "heapwright: free of a foreign pointer: 0x");
  EXPECT_DEATH(p.deallocate(b + 8), "heapwright: free of a foreign pointer: 0x.*not the beginning");
  EXPECT_DEATH(p.deallocate(b - 8), "heapwright: free of a foreign pointer: 0x");
}

TEST_F(PoolDeathTest, WrongLayout) {
  pool<> p{{40, 8}};
  void* const b = p.allocate();
  EXPECT_DEATH(p.deallocate(b, {41, 8}), "heapwright: free with a wrong layout: 0x");
}

}  // namespace
}  // namespace heapwright
