#include <heapwright/allocator/best_fit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "support/best_fit_audit.hpp"
#include "support/model.hpp"

namespace heapwright {
namespace {

using testing::model;

constexpr best_fit_plan deferred{.merging = merge::deferred};
constexpr best_fit_plan cache_lines{.alignment = 64};

using heap = best_fit<>;
using deferred_heap = best_fit<deferred>;

static_assert(allocator<heap> && can_own<heap> && can_deallocate_unsized<heap> && has_usable_size<heap> &&
              can_resize<heap> && can_reset<heap> && has_stats<heap> && !can_trim<heap>);

/// A range of `Bytes` and the heap in it.
template <class Heap>
struct with_memory {
  explicit with_memory(std::size_t bytes) : memory(bytes), tested(memory) { EXPECT_TRUE(tested.attached()); }

  std::vector<std::byte> memory;
  Heap tested;
};

template <class Heap>
void expect_one_untouched_range(Heap& h) {
  h.defragment();
  const best_fit_stats s = h.stats();
  EXPECT_EQ(s.in_use, 0u);
  EXPECT_EQ(s.headers, 0u);
  EXPECT_EQ(s.available, s.held);
  EXPECT_EQ(s.largest_free, s.held);
  EXPECT_EQ(fault_in(h), nullptr);
}

template <class Heap>
class BestFit : public ::testing::Test {};
using heaps = ::testing::Types<heap, deferred_heap, best_fit<cache_lines>,
                               best_fit<best_fit_plan{.alignment = 32, .merging = merge::deferred}>>;
TYPED_TEST_SUITE(BestFit, heaps);

// Both policies, for what depends on sizes of the default plan.
template <class Heap>
class BestFitDefault : public ::testing::Test {};
using default_heaps = ::testing::Types<heap, deferred_heap>;
TYPED_TEST_SUITE(BestFitDefault, default_heaps);

std::size_t any_size(auto& m) {
  switch (m.random(16)) {
    case 0: return m.random(60'000);
    case 1:
    case 2: return m.random(5000);
    case 3:
    case 4: return m.random(17);
    default: return m.random(300);
  }
}

std::size_t any_alignment(auto& m) { return std::size_t{1} << m.random(m.random(6) == 0 ? 13 : 5); }

TYPED_TEST(BestFit, KeepsEveryBlockApart) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    with_memory<TypeParam> in(1 * MiB + 24 * seed);
    model m(in.tested, seed);
    for (int round = 0; round < 24; ++round) {
      const bool grows = round % 3 != 2;
      for (int i = 0; i < 300; ++i) {
        const std::size_t action = m.random(16);
        if (action == 0 && i % 3 == 0) {
          in.tested.defragment();
        } else if (action < 3) {
          m.resize_any(1 + any_size(m));
        } else if (action < (grows ? 8u : 13u)) {
          m.deallocate_any();
        } else if (const std::size_t size = 1 + any_size(m); auto* const p = m.allocate({size, any_alignment(m)})) {
          EXPECT_TRUE(in.tested.owns(p));
          EXPECT_GE(in.tested.usable_size(p), size);
        }
      }
      ASSERT_EQ(fault_in(in.tested), nullptr);
      EXPECT_EQ(in.tested.stats().in_use, m.bytes()) << "as asked for, to the byte";
    }
    m.deallocate_all();
    expect_one_untouched_range(in.tested);
  }
}

TYPED_TEST(BestFit, ReallocatesAsCDoes) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    with_memory<TypeParam> in(512 * KiB);
    TypeParam& h = in.tested;
    std::minstd_rand random(seed);
    struct block {
      unsigned char* p = nullptr;
      std::size_t size = 0;
      unsigned char pattern = 0;
    };
    std::array<block, 100> blocks;
    for (int i = 0; i < 10'000; ++i) {
      block& b = blocks[random() % blocks.size()];
      const std::size_t size = random() % 10 == 0 ? 0 : random() % (random() % 8 == 0 ? 40'000 : 200);
      auto* const moved = static_cast<unsigned char*>(h.reallocate(b.p, size));
      const std::size_t kept = moved == nullptr && size != 0 ? b.size : std::min(size, b.size);
      const unsigned char* const now = moved == nullptr && size != 0 ? b.p : moved;
      for (std::size_t k = 0; k < kept; ++k) ASSERT_EQ(now[k], b.pattern);
      if (moved == nullptr && size != 0) continue;
      if (moved == nullptr && b.p == nullptr) ADD_FAILURE() << "a size of zero is a size like any other";
      b = {moved, moved == nullptr ? 0 : size, static_cast<unsigned char>(random())};
      if (moved != nullptr) std::memset(moved, b.pattern, b.size);
      if (i % 500 == 0) {
        ASSERT_EQ(fault_in(h), nullptr);
      }
    }
    for (const block& b : blocks) {
      if (b.p != nullptr) h.deallocate(b.p);
    }
    expect_one_untouched_range(h);
  }
}

TYPED_TEST(BestFit, EverySizeUntilExhaustionAndAgainAfterOneFree) {
  for (std::size_t size : {0, 1, 8, 16, 17, 24, 25, 40, 64, 100, 1000, 4096, 16'000, 16'384, 16'400, 40'000}) {
    with_memory<TypeParam> in(200 * KiB + 3);
    std::vector<void*> blocks;
    const layout l{size, 16};
    while (void* p = in.tested.allocate(l)) {
      std::memset(p, 0xAA, size);
      blocks.push_back(p);
    }
    ASSERT_EQ(fault_in(in.tested), nullptr);
    ASSERT_GE(blocks.size(), 4u);
    EXPECT_EQ(in.tested.allocate(l), nullptr);
    void* const freed = blocks[blocks.size() / 2];
    in.tested.deallocate(freed, l);
    EXPECT_EQ(in.tested.allocate(l), freed);
    EXPECT_EQ(in.tested.allocate(l), nullptr);
    // Every second one first, so that merging has to go both ways.
    for (std::size_t i = 0; i < blocks.size(); i += 2) in.tested.deallocate(blocks[i], l);
    for (std::size_t i = 1; i < blocks.size(); i += 2) in.tested.deallocate(blocks[i], l);
    EXPECT_EQ(in.tested.stats().available, in.tested.stats().held);
    expect_one_untouched_range(in.tested);
  }
}

TYPED_TEST(BestFit, RefusesWhatNoRangeCanHold) {
  with_memory<TypeParam> in(64 * KiB);
  const auto before = in.tested.stats().available;
  for (std::size_t size :
       {SIZE_MAX, SIZE_MAX - 7, SIZE_MAX - 8, SIZE_MAX - 15, SIZE_MAX / 2, std::size_t{1} << 62, 64 * KiB}) {
    for (std::size_t alignment : {std::size_t{1}, std::size_t{16}, std::size_t{4096}, std::size_t{1} << 63}) {
      EXPECT_EQ(in.tested.allocate({size, alignment}), nullptr) << size << " at " << alignment;
    }
  }
  EXPECT_EQ(in.tested.allocate({1, std::size_t{1} << 63}), nullptr);
  EXPECT_EQ(in.tested.allocate({1, std::size_t{1} << 62}), nullptr);
  void* const p = in.tested.allocate({100, 8});
  EXPECT_FALSE(in.tested.try_resize(p, {100, 8}, {SIZE_MAX, 8}));
  EXPECT_FALSE(in.tested.try_resize(p, {100, 8}, {SIZE_MAX / 2, 8}));
  EXPECT_EQ(in.tested.reallocate(p, SIZE_MAX), nullptr);
  in.tested.deallocate(p, {100, 8});
  EXPECT_EQ(in.tested.stats().available, before);
}

TYPED_TEST(BestFit, TakesBuffersOfAnyAlignment) {
  for (std::size_t offset = 0; offset < 70; ++offset) {
    std::vector<std::byte> memory(4096 + 128);
    const std::span<std::byte> buffer(memory.data() + offset, 4096);
    TypeParam h{buffer};
    ASSERT_TRUE(h.attached());
    EXPECT_GT(h.stats().held, 4096u - 2 * 64);
    model m(h);
    while (m.allocate({48, 16}) != nullptr) {
    }
    EXPECT_EQ(fault_in(h), nullptr);
    m.check_all();
    const auto outside = [&](std::size_t i) { return memory[i] == std::byte{0}; };
    for (std::size_t i = 0; i < offset; ++i) ASSERT_TRUE(outside(i));
    for (std::size_t i = offset + 4096; i < memory.size(); ++i) ASSERT_TRUE(outside(i));
    m.deallocate_all();
    expect_one_untouched_range(h);
  }
}

TYPED_TEST(BestFit, RefusesBuffersThatAreTooSmallAndASecondOne) {
  TypeParam h;
  EXPECT_FALSE(h.attached());
  EXPECT_EQ(h.allocate({1, 1}), nullptr);
  EXPECT_EQ(h.allocate({100, 128}), nullptr);
  EXPECT_FALSE(h.owns(&h));
  EXPECT_FALSE(h.owns(nullptr));
  EXPECT_EQ(h.stats().held, 0u);
  EXPECT_FALSE(h.attach({}));
  alignas(128) std::array<std::byte, 512> memory;
  EXPECT_FALSE(h.attach({memory.data(), 24}));
  EXPECT_FALSE(h.attached());
  EXPECT_TRUE(h.attach(memory));
  void* const p = h.allocate({24, 8});
  EXPECT_NE(p, nullptr);
  std::array<std::byte, 512> another;
  EXPECT_FALSE(h.attach(another));
  EXPECT_TRUE(h.owns(p));
  h.deallocate(p, {24, 8});
  TypeParam too_small{std::span<std::byte>(another.data(), 8)};
  EXPECT_FALSE(too_small.attached());
}

TYPED_TEST(BestFit, AlignedRequestsLoseNothing) {
  with_memory<TypeParam> in(256 * KiB);
  model m(in.tested);
  for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (std::size_t size : {1, 24, 100, 5000}) ASSERT_NE(m.allocate({size, alignment}), nullptr);
    ASSERT_NE(m.allocate({24, 8}), nullptr);
  }
  EXPECT_EQ(fault_in(in.tested), nullptr);
  while (m.blocks() > 20) m.deallocate_any();
  for (std::size_t alignment = 4096; alignment >= 32; alignment /= 2) ASSERT_NE(m.allocate({200, alignment}), nullptr);
  EXPECT_EQ(fault_in(in.tested), nullptr);
  m.deallocate_all();
  expect_one_untouched_range(in.tested);
}

TYPED_TEST(BestFit, AnAlignedBlockThatWasFreedServesTheNext) {
  with_memory<TypeParam> in(64 * KiB);
  const layout l{300, 1024};
  void* const p = in.tested.allocate(l);
  void* const behind = in.tested.allocate({100, 8});
  in.tested.deallocate(p, l);
  EXPECT_EQ(in.tested.allocate(l), p);
  in.tested.deallocate(p, l);
  in.tested.deallocate(behind, {100, 8});
  expect_one_untouched_range(in.tested);
}

TYPED_TEST(BestFit, ResetFreesEverything) {
  with_memory<TypeParam> in(128 * KiB);
  model m(in.tested);
  for (int i = 0; i < 300; ++i) m.allocate({m.random(500), 8});
  for (int i = 0; i < 100; ++i) m.deallocate_any();
  m.forget_all();
  in.tested.reset();
  expect_one_untouched_range(in.tested);
  const std::size_t all = in.tested.stats().held - tagged_block::tag_bytes - block_guard::bytes;
  void* const p = in.tested.allocate({all, 16});
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(in.tested.stats().available, 0u);
}

TYPED_TEST(BestFit, OwnsItsBlocksAndIsSafeForAnyPointer) {
  with_memory<TypeParam> in(64 * KiB);
  void* const tiny = in.tested.allocate({8, 8});
  void* const p = in.tested.allocate({100, 8});
  EXPECT_TRUE(in.tested.owns(tiny));
  EXPECT_TRUE(in.tested.owns(p));
  int local = 0;
  EXPECT_FALSE(in.tested.owns(&local));
  EXPECT_TRUE(in.tested.owns(static_cast<std::byte*>(p) + 1)) << "it points into a block";
  EXPECT_FALSE(in.tested.owns(in.memory.data() + 32 * KiB)) << "untouched";
  EXPECT_FALSE(in.tested.owns(in.memory.data() + in.memory.size()));
  for (std::uintptr_t at : {std::uintptr_t{0}, std::uintptr_t{16}, UINTPTR_MAX, UINTPTR_MAX - 15})
    EXPECT_FALSE(in.tested.owns(reinterpret_cast<void*>(at)));
}

TYPED_TEST(BestFit, ShowsEveryLiveBlockOnce) {
  with_memory<TypeParam> in(128 * KiB);
  std::map<void*, std::size_t> live;
  for (std::size_t i = 0; i < 400; ++i) live[in.tested.allocate({i % 100, 8})] = i % 100;
  for (auto it = live.begin(); it != live.end();) {
    in.tested.deallocate(it->first, {it->second, 8});
    it = live.erase(it);
    if (it != live.end()) ++it;
  }
  std::size_t shown = 0;
  in.tested.for_each_live([&](void* p, std::size_t usable) {
    ASSERT_EQ(live.count(p), 1u);
    EXPECT_GE(usable, live[p]);
    EXPECT_EQ(usable, in.tested.usable_size(p));
    ++shown;
  });
  EXPECT_EQ(shown, live.size());
}

TYPED_TEST(BestFitDefault, ABlockAndItsFreeNeighbourServeALargerRequest) {
  with_memory<TypeParam> in(64 * KiB);
  const layout l{64, 8};
  void* const a = in.tested.allocate(l);
  void* const b = in.tested.allocate(l);
  static_cast<void>(in.tested.allocate(l));
  while (in.tested.allocate({120, 8}) != nullptr) {
  }
  for (auto [first, second] : {std::pair{a, b}, std::pair{b, a}}) {
    in.tested.deallocate(first, l);
    in.tested.deallocate(second, l);
    void* const larger = in.tested.allocate({128, 8});
    EXPECT_EQ(larger, a);
    in.tested.deallocate(larger, {128, 8});
    EXPECT_EQ(in.tested.allocate(l), a);
    EXPECT_EQ(in.tested.allocate(l), b);
  }
}

TYPED_TEST(BestFitDefault, TakesTheBestFitAndNotMuchMore) {
  with_memory<TypeParam> in(1 * MiB);
  std::vector<void*> blocks;
  for (std::size_t kib : {80, 20, 40, 17, 60}) {
    blocks.push_back(in.tested.allocate({kib * KiB, 8}));
    static_cast<void>(in.tested.allocate({24, 8}));
  }
  const std::size_t before = in.tested.stats().in_use;
  for (std::size_t i = 0; i < blocks.size(); ++i) in.tested.deallocate(blocks[i]);
  EXPECT_EQ(in.tested.allocate({16'400, 8}), blocks[3]);
  EXPECT_EQ(in.tested.allocate({19 * KiB, 8}), blocks[1]);
  EXPECT_EQ(in.tested.allocate({41 * KiB, 8}), blocks[4]);
  EXPECT_EQ(in.tested.allocate({30 * KiB, 8}), blocks[2]);
  EXPECT_EQ(in.tested.allocate({80 * KiB, 8}), blocks[0]);
  EXPECT_LE(in.tested.usable_size(blocks[3]), 16'400u + 32);
  EXPECT_LT(in.tested.stats().in_use, before);
  EXPECT_EQ(fault_in(in.tested), nullptr);
}

TYPED_TEST(BestFitDefault, PrefersFreeBlocksToUntouchedSpace) {
  with_memory<TypeParam> in(256 * KiB);
  void* const exact = in.tested.allocate({100, 8});
  static_cast<void>(in.tested.allocate({24, 8}));
  void* const larger = in.tested.allocate({1000, 8});
  static_cast<void>(in.tested.allocate({24, 8}));
  void* const largest = in.tested.allocate({50'000, 8});
  void* const last = in.tested.allocate({24, 8});
  in.tested.deallocate(exact);
  in.tested.deallocate(larger);
  in.tested.deallocate(largest);
  EXPECT_EQ(in.tested.allocate({100, 8}), exact);
  EXPECT_EQ(in.tested.allocate({900, 8}), larger);
  EXPECT_EQ(in.tested.allocate({2000, 8}), largest);
  EXPECT_LT(in.tested.allocate({30'000, 8}), last);
  EXPECT_GT(in.tested.allocate({30'000, 8}), last);
}

TYPED_TEST(BestFitDefault, HeadersTakeEightBytesAndTinyBlocksNone) {
  with_memory<TypeParam> in(256 * KiB);
  const std::size_t spare = block_guard::bytes;
  for (std::size_t size : {24, 40, 56, 1000, 2008}) {
    const std::size_t before = in.tested.stats().available;
    EXPECT_NE(in.tested.allocate({size - spare, 8}), nullptr);
    EXPECT_EQ(before - in.tested.stats().available, size + 8) << size;
  }
  auto* const first = static_cast<std::byte*>(in.tested.allocate({16 - spare, 8}));
  EXPECT_EQ(in.tested.allocate({1, 1}), first + 16);
  EXPECT_EQ(in.tested.allocate({0, 1}), first + 32);
  for (int i = 0; i < 10'000; ++i) {
    if (in.tested.allocate({8, 8}) == nullptr) break;
  }
  EXPECT_EQ(fault_in(in.tested), nullptr);
  const best_fit_stats s = in.tested.stats();
  EXPECT_LT(s.headers, (s.in_use + s.rounding) / 9);
}

TYPED_TEST(BestFitDefault, TellsWhatRoundingTakes) {
  with_memory<TypeParam> in(64 * KiB);
  void* const p = in.tested.allocate(25);
  EXPECT_EQ(in.tested.stats().in_use, 25U);
  EXPECT_EQ(in.tested.stats().rounding, 15U) << "the block has 40";
  void* const tiny = in.tested.allocate(3);
  EXPECT_EQ(in.tested.stats().in_use, 28U);
  EXPECT_EQ(in.tested.stats().rounding, 15U + 13U);
  EXPECT_TRUE(in.tested.try_resize(p, 25, 30));
  EXPECT_TRUE(in.tested.try_resize(tiny, 3, 7));
  EXPECT_EQ(in.tested.stats().in_use, 37U);
  in.tested.deallocate(p);
  in.tested.deallocate(tiny);
  EXPECT_EQ(in.tested.stats().in_use + in.tested.stats().rounding, 0U);
}

TYPED_TEST(BestFitDefault, TinyPagesComeBack) {
  with_memory<TypeParam> in(64 * KiB);
  std::vector<void*> tiny;
  while (in.tested.stats().available > 20 * KiB) tiny.push_back(in.tested.allocate({8, 8}));
  const auto all = in.tested.stats();
  for (std::size_t i = 0; i < tiny.size(); i += 2) in.tested.deallocate(tiny[i], {8, 8});
  EXPECT_EQ(fault_in(in.tested), nullptr);
  for (std::size_t i = 0; i < tiny.size(); i += 2) EXPECT_TRUE((tiny[i] = in.tested.allocate({5, 1})) != nullptr);
  EXPECT_EQ(in.tested.stats().available, all.available) << "free blocks in pages are used before new pages";
  for (std::size_t i = 1; i < tiny.size(); i += 2) in.tested.deallocate(tiny[i]);
  for (std::size_t i = 0; i < tiny.size(); i += 2) in.tested.deallocate(tiny[i], {5, 1});
  expect_one_untouched_range(in.tested);
}

TYPED_TEST(BestFitDefault, TinyRequestsInASmallRangeAreBlocks) {
  with_memory<TypeParam> in(1024);
  model m(in.tested);
  while (m.allocate({8, 8}) != nullptr) {
  }
  EXPECT_GE(m.blocks(), 31u - 1);
  EXPECT_EQ(fault_in(in.tested), nullptr);
  m.deallocate_all();
  expect_one_untouched_range(in.tested);
}

TYPED_TEST(BestFitDefault, ResizesInPlace) {
  with_memory<TypeParam> in(64 * KiB);
  TypeParam& h = in.tested;
  const layout l{100, 8};
  void* const a = h.allocate(l);
  void* const b = h.allocate(l);
  void* const c = h.allocate(l);
  EXPECT_FALSE(h.try_resize(a, l, {200, 8})) << "the neighbour is live";
  EXPECT_TRUE(h.try_resize(a, l, {l.size + 1, 8}));
  EXPECT_TRUE(h.try_resize(a, {l.size + 1, 8}, l));
  h.deallocate(b, l);
  EXPECT_TRUE(h.try_resize(a, l, {200, 8})) << "into the neighbour";
  EXPECT_FALSE(h.try_resize(a, {200, 8}, {500, 8}));
  EXPECT_TRUE(h.try_resize(a, {200, 8}, {10, 8}));
  EXPECT_NE(h.allocate({150, 8}), nullptr);
  EXPECT_EQ(fault_in(h), nullptr);
  EXPECT_TRUE(h.try_resize(c, l, {20'000, 8})) << "into untouched space";
  EXPECT_TRUE(h.try_resize(c, {20'000, 8}, {100, 8}));
  EXPECT_TRUE(h.try_resize(c, {100, 8}, {30'000, 8})) << "into what it was, and further";
  EXPECT_FALSE(h.try_resize(c, {30'000, 8}, {64 * KiB, 8}));
  EXPECT_EQ(fault_in(h), nullptr);

  void* const tiny = h.allocate({1, 1});
  EXPECT_TRUE(h.try_resize(tiny, {1, 1}, {8, 8}));
  EXPECT_FALSE(h.try_resize(tiny, {8, 8}, {24, 8}));
  h.deallocate(tiny, {8, 8});
  h.deallocate(a, {10, 8});
  h.deallocate(c, {30'000, 8});
  EXPECT_EQ(fault_in(h), nullptr);
}

TYPED_TEST(BestFitDefault, ReallocateStaysWhereItCan) {
  with_memory<TypeParam> in(64 * KiB);
  TypeParam& h = in.tested;
  auto* p = static_cast<std::byte*>(h.reallocate(nullptr, 100));
  void* const behind = h.allocate({100, 8});
  std::memset(p, 0x5A, 100);
  EXPECT_EQ(h.reallocate(p, 101), p) << "the same size when rounded up";
  EXPECT_EQ(h.reallocate(p, 1), p);
  EXPECT_EQ(h.reallocate(p, 90), p) << "what was cut off is free";
  auto* const moved = static_cast<std::byte*>(h.reallocate(p, 1000));
  EXPECT_NE(moved, p);
  EXPECT_EQ(moved[0], std::byte{0x5A});
  EXPECT_EQ(h.reallocate(moved, 20'000), moved) << "untouched space is behind it";
  const auto before = h.stats();
  EXPECT_EQ(h.reallocate(moved, 100'000), nullptr);
  EXPECT_EQ(h.stats().in_use, before.in_use);
  EXPECT_EQ(moved[0], std::byte{0x5A});
  EXPECT_EQ(h.reallocate(moved, 0), nullptr);
  h.deallocate(behind, {100, 8});
  auto* const tiny = static_cast<std::byte*>(h.reallocate(nullptr, 8));
  std::memset(tiny, 0x77, 8);
  auto* const grown = static_cast<std::byte*>(h.reallocate(tiny, 500));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(grown[i], std::byte{0x77});
  h.deallocate(grown);
  expect_one_untouched_range(h);
}

TEST(BestFitImmediate, FreeingTheLastBlocksMovesTheEndBack) {
  with_memory<heap> in(64 * KiB);
  const layout l{1000, 8};
  void* const a = in.tested.allocate(l);
  void* const b = in.tested.allocate(l);
  void* const c = in.tested.allocate(l);
  in.tested.deallocate(b, l);
  in.tested.deallocate(c, l);
  EXPECT_EQ(in.tested.stats().largest_free, in.tested.stats().available) << "b and c merged with what is behind them";
  EXPECT_EQ(in.tested.defragment(), 0u);
  in.tested.deallocate(a, l);
  expect_one_untouched_range(in.tested);
}

TEST(BestFitDeferred, MergesOnDemandAndTellsHowMuchCameBack) {
  with_memory<deferred_heap> in(64 * KiB);
  deferred_heap& h = in.tested;
  const layout l{1000, 8};
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(h.allocate(l));
  const std::size_t untouched = h.stats().largest_free;
  for (int i = 2; i < 10; ++i) h.deallocate(blocks[static_cast<std::size_t>(i)], l);
  EXPECT_EQ(h.stats().largest_free, untouched);
  const std::size_t back = h.defragment();
  EXPECT_EQ(h.stats().largest_free, untouched + back);
  EXPECT_GE(back, 8 * l.size);
  EXPECT_EQ(h.defragment(), 0u);
  h.deallocate(blocks[0], l);
  EXPECT_EQ(h.defragment(), 0u) << "a live block is behind it";
  h.deallocate(blocks[1], l);
  expect_one_untouched_range(h);
}

TEST(BestFitDeferred, MergesWhenARequestWouldFail) {
  with_memory<deferred_heap> in(64 * KiB);
  std::vector<void*> blocks;
  while (void* p = in.tested.allocate({24, 8})) blocks.push_back(p);
  for (void* p : blocks) in.tested.deallocate(p, {24, 8});
  EXPECT_NE(in.tested.allocate({30'000, 8}), nullptr);
  EXPECT_NE(in.tested.allocate({20'000, 4096}), nullptr);
  EXPECT_EQ(fault_in(in.tested), nullptr);
}

// The tree in orders that make a plain one a list. All blocks are larger than the slots take, and
// kept apart.
void exercise_tree(const std::vector<std::size_t>& sizes) {
  with_memory<heap> in(16 * MiB);
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (std::size_t size : sizes) {
    blocks.emplace_back(in.tested.allocate({size, 8}), size);
    ASSERT_NE(blocks.back().first, nullptr);
    ASSERT_NE(in.tested.allocate({24, 8}), nullptr);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    in.tested.deallocate(blocks[i].first, {blocks[i].second, 8});
    if (i % 16 == 0) {
      ASSERT_EQ(fault_in(in.tested), nullptr) << "after " << i;
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto& [p, size] = blocks[i * 7 % blocks.size()];
    ASSERT_NE(in.tested.allocate({size, 8}), nullptr);
    if (i % 16 == 0) {
      ASSERT_EQ(fault_in(in.tested), nullptr) << "after taking " << i;
    }
  }
}

TEST(BestFitTree, StaysBalanced) {
  std::vector<std::size_t> ascending, descending, equal, zigzag;
  for (std::size_t i = 0; i < 400; ++i) {
    ascending.push_back(17'000 + 32 * i);
    descending.push_back(17'000 + 32 * (400 - i));
    equal.push_back(20'000 + 32 * (i % 3));
    zigzag.push_back(i % 2 == 0 ? 17'000 + 32 * i : 40'000 - 32 * i);
  }
  for (const auto& sizes : {ascending, descending, equal, zigzag}) exercise_tree(sizes);
}

TEST(BestFitStatic, WorksInStaticMemory) {
  static std::byte memory[4096];
  static best_fit<> h{memory};
  void* const p = h.allocate({24, 8});
  EXPECT_NE(p, nullptr);
  h.deallocate(p, {24, 8});
}

#ifdef HEAPWRIGHT_HAS_ASAN
bool poisoned(const void* p) { return __asan_address_is_poisoned(p) != 0; }

TYPED_TEST(BestFitDefault, OnlyWhatIsInUseCanBeTouched) {
  std::vector<std::byte> memory(64 * KiB);
  const auto expect_only = [&](std::vector<std::pair<void*, std::size_t>> live) {
    for (std::size_t i = 64; i + 64 < memory.size(); ++i) {
      const auto inside = [&](const auto& b) { return address_of(&memory[i]) - address_of(b.first) < b.second; };
      ASSERT_EQ(poisoned(&memory[i]), std::none_of(live.begin(), live.end(), inside)) << i;
    }
  };
  {
    TypeParam h{memory};
    expect_only({});
    void* const a = h.allocate({100, 8});
    void* const b = h.allocate({24, 8});
    void* const tiny = h.allocate({8, 8});
    void* const aligned = h.allocate({3000, 1024});
    expect_only({{a, 100}, {b, 24}, {tiny, 8}, {aligned, 3000}});
    h.deallocate(a, {100, 8});
    EXPECT_TRUE(h.try_resize(aligned, {3000, 1024}, {5000, 1024}));
    expect_only({{b, 24}, {tiny, 8}, {aligned, 5000}});
    EXPECT_EQ(h.reallocate(aligned, 200), aligned);
    h.deallocate(tiny);
    h.defragment();
    expect_only({{b, 24}, {aligned, 200}});
    h.reset();
    expect_only({});
    static_cast<void>(h.allocate({1000, 8}));
  }
  for (const std::byte& b : memory) ASSERT_FALSE(poisoned(&b));
}
#endif

}  // namespace
}  // namespace heapwright
