#include <heapwright/allocator/slab.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

#include <heapwright/source/buffer.hpp>

#include "support/aligned_range.hpp"
#include "support/model.hpp"
#include "support/strict_source.hpp"

namespace heapwright {
namespace {

using testing::model;
using testing::strict_source;
using shared = upstream<strict_source>;

static_assert(allocator<slab<>> && can_own<slab<>> && can_deallocate_unsized<slab<>> && has_usable_size<slab<>> &&
              can_reset<slab<>> && can_trim<slab<>> && has_stats<slab<>>);

constexpr layout layouts[] = {{0, 1},   {1, 1},   {3, 1},    {12, 4},      {8, 8},    {24, 8},      {48, 16},
                              {100, 4}, {64, 64}, {200, 64}, {4096, 4096}, {5000, 8}, {100'000, 16}};
constexpr slab_plan plans[] = {
    {}, {.keep_empty = 0}, {.keep_empty = SIZE_MAX}, {.bytes = 1 * KiB, .keep_empty = 2}, {.bytes = 256 * KiB}};

/// All the blocks of one slab.
template <class Slab>
std::vector<void*> fill_slab(Slab& s) {
  std::vector<void*> blocks{s.allocate()};
  const std::size_t slabs = s.stats().slabs;
  for (;;) {
    void* const p = s.allocate();
    if (s.stats().slabs > slabs) {
      s.deallocate(p);
      return blocks;
    }
    blocks.push_back(p);
  }
}

TEST(Slab, KeepsEveryBlockApart) {
  for (const slab_plan plan : plans) {
    for (const layout of : layouts) {
      strict_source source;
      slab<shared> s{of, plan, source};
      model m(s);
      for (int round = 0; round < 3; ++round) {
        const std::size_t grows = 3 + m.random(2);
        const int steps = of.size > 10'000 ? 300 : 2000;
        for (int i = 0; i < steps; ++i) {
          if (of.size > 0 && m.random(6) >= grows) {
            m.deallocate_any();
          } else {
            ASSERT_NE(m.allocate(of), nullptr);
          }
        }
        if (of.size > 0) {
          EXPECT_EQ(s.stats().in_use, m.blocks() * s.usable_size(nullptr));
        }
        EXPECT_EQ(s.stats().held, source.held());
        EXPECT_EQ(s.stats().slabs, source.ranges());
        m.check_all();
        if (round == 1) {
          m.forget_all();
          s.reset();
          EXPECT_EQ(s.stats().in_use, 0U);
          EXPECT_LE(source.ranges(), plan.keep_empty);
        }
      }
      m.deallocate_all();
    }
  }
}

TEST(Slab, EveryBitIsABlockAndNoBlockIsHandedOutTwice) {
  for (const slab_plan plan : plans) {
    for (const layout of : layouts) {
      strict_source source;
      slab<shared> s{of, plan, source};
      const std::vector<void*> first = fill_slab(s);
      const std::size_t each = s.usable_size(nullptr);
      EXPECT_EQ(std::set<void*>(first.begin(), first.end()).size(), first.size());
      EXPECT_GE(first.size(), 8U) << of.size;
      const std::size_t bytes = source.held() / source.ranges();
      EXPECT_GE(bytes, plan.bytes);
      // What is not blocks: the header with a bit per block, which may be short of a block for each
      // of the two ends.
      EXPECT_GE(first.size() * each + first.size() / 4 + 2 * std::max<std::size_t>(each, of.alignment) + 256, bytes);
      for (void* const p : first) EXPECT_EQ(align_down(address_of(p), bytes), align_down(address_of(first[0]), bytes));
      for (void* const p : first) s.deallocate(p);
    }
  }
}

TEST(Slab, GoesOnFromWhereTheLastSearchEnded) {
  strict_source source;
  slab<shared> s{{64, 8}, {}, source};
  source.allow(1);
  std::vector<void*> blocks;
  for (int i = 0; i < 130; ++i) blocks.push_back(s.allocate());
  void* const early = blocks[0];
  s.deallocate(early);
  EXPECT_NE(s.allocate(), early) << "the search has passed it";
  std::size_t later = 0;
  for (;;) {
    void* const p = s.allocate();
    if (p == early || p == nullptr) {
      EXPECT_EQ(p, early) << "the search comes to it again before it gives up";
      break;
    }
    ++later;
  }
  EXPECT_GT(later, 100U) << "after all that lies behind";
  EXPECT_EQ(s.allocate(), nullptr);
  s.reset();
}

TEST(Slab, AFullSlabIsUsedAgainWhenABlockOfItIsFree) {
  strict_source source;
  slab<shared> s{{32, 8}, {}, source};
  std::vector<void*> blocks;
  while (source.ranges() < 6) blocks.push_back(s.allocate());
  s.deallocate(blocks.back());
  blocks.pop_back();
  source.allow(0);
  while (void* const p = s.allocate()) blocks.push_back(p);
  const std::size_t all = blocks.size();
  for (int round = 0; round < 50; ++round) {
    std::minstd_rand random(static_cast<unsigned>(round));
    std::shuffle(blocks.begin(), blocks.end(), random);
    std::set<void*> freed;
    const std::size_t n = 1 + static_cast<std::size_t>(round) * 13;
    for (std::size_t i = 0; i < n; ++i) {
      freed.insert(blocks.back());
      s.deallocate(blocks.back());
      blocks.pop_back();
    }
    EXPECT_EQ(s.stats().in_use, blocks.size() * 32);
    while (void* const p = s.allocate()) {
      EXPECT_EQ(freed.erase(p), 1U);
      blocks.push_back(p);
    }
    EXPECT_EQ(blocks.size(), all) << "each free block is found";
  }
}

TEST(Slab, GivesEmptySlabsBackAsItWasTold) {
  for (const std::size_t keep : {std::size_t{0}, std::size_t{1}, std::size_t{3}, SIZE_MAX}) {
    for (const bool newest_first : {false, true}) {
      strict_source source;
      slab<shared> s{{48, 16}, {.keep_empty = keep}, source};
      for (int round = 0; round < 3; ++round) {
        std::vector<void*> blocks;
        while (source.ranges() < 8 || blocks.size() < 2500) blocks.push_back(s.allocate());
        const std::size_t most = source.ranges();
        if (newest_first) std::reverse(blocks.begin(), blocks.end());
        for (void* const p : blocks) s.deallocate(p);
        EXPECT_EQ(source.ranges(), std::min(keep, most)) << "keep " << keep;
        EXPECT_EQ(s.stats().in_use, 0U);
      }
      const std::size_t held = source.held();
      EXPECT_EQ(s.trim(), held);
      EXPECT_EQ(source.held(), 0U);
      s.deallocate(s.allocate());
    }
  }
}

TEST(Slab, KeepsNoMoreThanItWasToldInAnyOrderOfFrees) {
  for (const std::size_t keep : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
    strict_source source;
    slab<shared> s{{500, 4}, {.keep_empty = keep}, source};
    model m(s, static_cast<unsigned>(keep) + 1);
    for (int round = 0; round < 60; ++round) {
      const std::size_t target = m.random(400);
      while (m.blocks() < target) ASSERT_NE(m.allocate({500, 4}), nullptr);
      while (m.blocks() > target / 8) m.deallocate_any();
      const std::size_t before = source.ranges();
      if (round % 4 == 0) {
        s.trim();
        EXPECT_LE(before - source.ranges(), keep) << "empty slabs held";
      }
      EXPECT_LE(source.ranges(), m.blocks() + keep);
    }
    m.deallocate_all();
    EXPECT_LE(source.ranges(), keep);
  }
}

TEST(Slab, ASingleBlockGoesAndComes) {
  for (const std::size_t keep : {std::size_t{0}, std::size_t{1}}) {
    strict_source source;
    slab<shared> s{{16, 16}, {.keep_empty = keep}, source};
    for (int i = 0; i < 3000; ++i) {
      void* const p = s.allocate();
      EXPECT_EQ(s.stats().in_use, 16U);
      s.deallocate(p);
      EXPECT_EQ(s.stats().in_use, 0U);
      EXPECT_EQ(source.ranges(), keep);
    }
    EXPECT_EQ(source.requests(), keep == 0 ? 3000U : 1U);
  }
}

TEST(Slab, TrimLosesNoBlock) {
  strict_source source;
  slab<shared> s{{32, 8}, {.keep_empty = SIZE_MAX}, source};
  model m(s);
  for (int round = 0; round < 20; ++round) {
    while (m.blocks() < 3000) m.allocate({32, 8});
    const std::size_t left = m.random(4);
    while (m.blocks() > left) m.deallocate_any();
    const std::size_t before = source.held();
    const std::size_t trimmed = s.trim();
    EXPECT_EQ(trimmed, before - source.held());
    EXPECT_LE(source.ranges(), left);
    EXPECT_EQ(s.stats().in_use, left * 32);
    m.check_all();
  }
  m.deallocate_all();
}

TEST(Slab, ResetFreesAllBlocksAndKeepsWhatItWasTold) {
  strict_source source;
  slab<shared> s{{40, 8}, {.keep_empty = 3}, source};
  const auto fill_six = [&] {
    std::set<void*> blocks;
    while (source.ranges() < 6) blocks.insert(s.allocate());
    return blocks.size();
  };
  const std::size_t blocks = fill_six();
  for (int round = 0; round < 3; ++round) {
    s.reset();
    EXPECT_EQ(source.ranges(), 3U);
    EXPECT_EQ(s.stats().in_use, 0U);
    EXPECT_EQ(fill_six(), blocks) << "each of them once";
  }
  s.reset();
  EXPECT_EQ(s.trim(), 3 * 16 * KiB) << "what was kept is empty";
  s.reset();
  EXPECT_EQ(s.stats().held, 0U);
}

TEST(Slab, NullWhenTheSourceHasNoMoreAndGoesOnWhenItHas) {
  strict_source source;
  slab<shared> s{{64, 8}, {}, source};
  source.allow(0);
  EXPECT_EQ(s.allocate(), nullptr);
  EXPECT_EQ(s.allocate(), nullptr);
  EXPECT_EQ(s.stats().held, 0U);
  source.allow(1);
  std::vector<void*> blocks;
  while (void* const p = s.allocate()) blocks.push_back(p);
  EXPECT_EQ(s.stats().slabs, 1U);
  s.deallocate(blocks[7]);
  EXPECT_EQ(s.allocate(), blocks[7]);
  EXPECT_EQ(s.allocate(), nullptr);
  for (void* const p : blocks) s.deallocate(p);
  EXPECT_EQ(s.stats().in_use, 0U);
}

TEST(Slab, TakesWhatFitsItsBlocks) {
  slab<> s{{20, 8}};
  EXPECT_EQ(s.usable_size(nullptr), 24U) << "rounded up to the alignment";
  void* const p = s.allocate({24, 8});
  void* const q = s.allocate({0, 1});
  EXPECT_NE(p, nullptr);
  EXPECT_NE(q, nullptr);
  EXPECT_NE(p, q);
  EXPECT_EQ(s.allocate({25, 8}), nullptr);
  EXPECT_EQ(s.allocate({8, 16}), nullptr);
  s.deallocate(p, {24, 8});
  s.deallocate(q, {0, 1});
  EXPECT_EQ(s.stats().in_use, 0U);
}

TEST(Slab, KnowsItsOwn) {
  slab<> s{{64, 8}}, other{{64, 8}};
  EXPECT_FALSE(s.owns(nullptr));
  EXPECT_FALSE(s.owns(&s));
  EXPECT_FALSE(s.owns(reinterpret_cast<void*>(~std::uintptr_t{0})));
  std::vector<void*> blocks;
  while (s.stats().slabs < 4) blocks.push_back(s.allocate());
  void* const others = other.allocate();
  for (void* const p : blocks) {
    EXPECT_TRUE(s.owns(p));
    EXPECT_TRUE(s.owns(static_cast<std::byte*>(p) + 63));
    EXPECT_FALSE(other.owns(p));
  }
  EXPECT_FALSE(s.owns(others));
  EXPECT_FALSE(s.owns(reinterpret_cast<void*>(0x1234567890)));
}

TEST(Slab, NeverWritesToABlock) {
  constexpr auto untouched = std::byte{0x5A};
  const testing::aligned_range<16 * KiB> memory;
  std::ranges::fill(memory.bytes(), untouched);
  buffer_source source{memory.bytes()};
  slab<upstream<buffer_source>> s{{64, 64}, {.keep_empty = SIZE_MAX}, source};
  std::vector<std::byte*> blocks;
  for (int round = 0; round < 2; ++round) {
    while (void* const p = s.allocate()) blocks.push_back(static_cast<std::byte*>(p));
    ASSERT_GT(blocks.size(), 200U);
    for (const std::byte* const p : blocks) {
      EXPECT_TRUE(std::all_of(p, p + 64, [](std::byte b) { return b == untouched; }));
    }
    for (std::byte* const p : blocks) s.deallocate(p);
    blocks.clear();
    s.reset();
  }
}

#ifdef HEAPWRIGHT_HAS_ASAN
TEST(Slab, PoisonsAllButLiveBlocks) {
  strict_source source;
  slab<shared> s{{64, 64}, {.keep_empty = 0}, source};
  std::vector<void*> blocks = fill_slab(s);
  const auto* const low = static_cast<std::byte*>(*std::min_element(blocks.begin(), blocks.end()));
  const auto* const high = static_cast<std::byte*>(*std::max_element(blocks.begin(), blocks.end()));
  EXPECT_TRUE(__asan_address_is_poisoned(low - 1)) << "in front of the first block";
  EXPECT_TRUE(__asan_address_is_poisoned(high + 64)) << "behind the last";
  for (void* const p : blocks) EXPECT_EQ(__asan_region_is_poisoned(p, 64), nullptr);
  s.deallocate(blocks[5]);
  EXPECT_TRUE(__asan_address_is_poisoned(blocks[5]));
  EXPECT_TRUE(__asan_address_is_poisoned(static_cast<std::byte*>(blocks[5]) + 63));
  EXPECT_FALSE(__asan_address_is_poisoned(blocks[4]));
  EXPECT_FALSE(__asan_address_is_poisoned(blocks[6]));
  s.reset();
}

TEST(Slab, UnpoisonsWhatGoesBack) {
  static std::byte memory[64 * KiB];
  struct fixed {
    void* allocate(layout l) noexcept { return reinterpret_cast<void*>(align_up(address_of(memory), l.alignment)); }
    void deallocate(void* p, layout l) noexcept { EXPECT_EQ(__asan_region_is_poisoned(p, l.size), nullptr); }
  };
  slab<fixed> s{{64, 64}, {.keep_empty = 0}};
  s.deallocate(s.allocate());
  EXPECT_EQ(__asan_region_is_poisoned(memory, sizeof memory), nullptr);
}
#endif

}  // namespace
}  // namespace heapwright
