// States what the documentation says of best_fit. Written without the code.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include <heapwright/allocator/best_fit.hpp>
#include <heapwright/core/check.hpp>

#include "model.hpp"

namespace {

using namespace heapwright;
using namespace from_docs;

// "held = in_use + rounding + headers + available"; "[in_use] that live blocks were asked for"
template <class A>
void figures_agree(const A& a, const live_blocks& live) {
  const best_fit_stats s = a.stats();
  EXPECT_EQ(s.held, s.in_use + s.rounding + s.headers + s.available);
  EXPECT_EQ(s.in_use, live.bytes());
  EXPECT_LE(s.largest_free, s.available);
}

// "Calls f(pointer, usable size) for every live block"
template <class A>
void sees_every_block(const A& a, const live_blocks& live) {
  std::map<const void*, std::size_t> seen;
  a.for_each_live([&](const void* p, std::size_t usable) { EXPECT_TRUE(seen.emplace(p, usable).second); });
  EXPECT_EQ(seen.size(), live.size());
  for (std::size_t i = 0; i < live.size(); ++i) {
    const auto found = seen.find(live[i].at);
    ASSERT_NE(found, seen.end());
    EXPECT_EQ(found->second, a.usable_size(live[i].at));
    EXPECT_GE(found->second, live[i].asked.size);
  }
}

/// Allocates, frees with and without a layout, resizes and reallocates, and compares with the model
/// all the time.
template <best_fit_plan Plan>
void random_operations(std::size_t bytes, std::size_t offset, unsigned seed, unsigned steps) {
  odd_buffer buffer(bytes, offset);
  best_fit<Plan> a;
  EXPECT_EQ(a.allocate({1, 1}), nullptr);  // "Without memory: every request gets null until attach."
  if (!a.attach(buffer.span())) {
    EXPECT_FALSE(a.attached());
    EXPECT_EQ(a.allocate({0, 1}), nullptr);
    return;
  }
  EXPECT_TRUE(a.attached());
  EXPECT_FALSE(a.attach(buffer.span()));  // "False: [...] there is one already."
  random_bits random(seed);
  live_blocks live;
  const auto next = any_layout(std::max<std::size_t>(bytes / 4, 1), 4 * KiB);
  for (unsigned i = 0; i < steps; ++i) {
    const auto kind = random() % 8;
    const std::size_t which = live.empty() ? 0 : random() % live.size();
    if (kind < 4 || live.empty()) {
      const layout l = next(random);
      const auto before = a.stats();
      if (void* const p = a.allocate(l)) {
        ASSERT_TRUE(buffer.contains(p, l.size));
        EXPECT_TRUE(lies_at(p, Plan.alignment));  // "[alignment] of every block"
        EXPECT_TRUE(a.owns(p));
        EXPECT_GE(a.usable_size(p), l.size);
        live.add(p, l);
      } else {  // "Null when nothing that is free is large enough; then everything is as it was."
        EXPECT_EQ(a.stats().in_use, before.in_use);
        EXPECT_EQ(a.stats().available, before.available);
      }
    } else if (kind < 6) {
      const auto b = live.remove(which);
      kind == 4 ? a.deallocate(b.at) : a.deallocate(b.at, b.asked);
    } else if (kind == 6) {  // "changes the size in place; false leaves the block as it was"
      const layout from = live[which].asked;
      const layout to{random() % 3 == 0 ? next(random).size : random() % (from.size + 40), from.alignment};
      live.look_at(which);
      if (a.try_resize(live[which].at, from, to)) live.resized(which, to);
    } else {  // "As realloc of C"
      const auto old = live.remove(which);
      const std::size_t to = next(random).size;
      auto* const p = static_cast<std::byte*>(a.reallocate(old.at, to));
      if (p != nullptr) {
        EXPECT_TRUE(
            std::all_of(p, p + std::min(to, old.asked.size), [&](std::byte b) { return b == std::byte{old.mark}; }));
        live.add(p, {to, Plan.alignment});
        EXPECT_TRUE(lies_at(p, Plan.alignment));
      } else if (to != 0) {
        live.add(old.at, old.asked);
      }
    }
    if (i % 16 == 0) {
      figures_agree(a, live);
      sees_every_block(a, live);
    }
    if (i % 64 == 0) (void)a.defragment();
    if (::testing::Test::HasFatalFailure()) return;
  }
  while (!live.empty()) {
    const auto b = live.remove(0);
    a.deallocate(b.at, b.asked);
  }
  figures_agree(a, live);
  EXPECT_EQ(a.stats().available, a.stats().held - a.stats().headers);
  const std::size_t room = a.stats().largest_free;
  (void)a.defragment();
  EXPECT_GE(a.stats().largest_free, room);
  EXPECT_EQ(a.defragment(), 0u);
  a.reset();
  EXPECT_EQ(a.stats().in_use, 0u);
  EXPECT_EQ(a.stats().headers, 0u);
  EXPECT_EQ(a.stats().available, a.stats().held);
}

constexpr best_fit_plan deferred{.merging = merge::deferred};
constexpr best_fit_plan wide{.alignment = 64};
constexpr best_fit_plan wide_deferred{.alignment = 256, .merging = merge::deferred};

TEST(BestFit, AgreesWithTheModel) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    random_operations<best_fit_plan{}>(64 * KiB, seed, seed, 600);
    random_operations<deferred>(64 * KiB, seed, seed, 600);
    random_operations<wide>(64 * KiB, seed, seed, 300);
    random_operations<wide_deferred>(64 * KiB, seed, seed, 300);
  }
}

// "Takes the buffer, of any alignment": "False: it is too small for a block".
TEST(BestFit, ABufferOfAnySizeAndAlignment) {
  std::size_t least = SIZE_MAX;
  for (std::size_t bytes = 0; bytes <= 300; bytes += 3) {
    for (const std::size_t offset : {0, 1, 7, 8, 15}) {
      random_operations<best_fit_plan{}>(bytes, offset, static_cast<unsigned>(bytes), 30);
      random_operations<wide_deferred>(bytes * 5, offset, static_cast<unsigned>(bytes), 30);
      odd_buffer buffer(bytes, offset);
      best_fit<> a(buffer.span());
      if (!a.attached()) continue;
      least = std::min(least, bytes);
      EXPECT_NE(a.allocate({1, 1}), nullptr)
          << "a buffer of " << bytes << " bytes at " << offset << " has room for a block";
    }
  }
  EXPECT_LT(least, 300u);
  best_fit<> none(std::span<std::byte>{});
  EXPECT_FALSE(none.attached());
  none.reset();
  none.deallocate(nullptr);
  EXPECT_EQ(none.stats().held, 0u);
  EXPECT_FALSE(none.owns(&none));
  EXPECT_EQ(none.defragment(), 0u);
  EXPECT_EQ(none.reallocate(nullptr, 10), nullptr);
}

// A size or an alignment beyond the range gets null.
TEST(BestFit, RefusesWhatOverflows) {
  odd_buffer buffer(64 * KiB, 3);
  best_fit<> a(buffer.span());
  for (const std::size_t huge :
       {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 16, SIZE_MAX - 31, SIZE_MAX / 2, std::size_t{1} << 48, 64 * KiB}) {
    for (std::size_t alignment = 1; alignment != 0; alignment *= 2) {
      EXPECT_EQ(a.allocate({huge, alignment}), nullptr) << huge << " at " << alignment;
    }
    void* const p = a.allocate({40, 8});
    EXPECT_FALSE(a.try_resize(p, {40, 8}, {huge, 8}));
    EXPECT_EQ(a.reallocate(p, huge), nullptr);
    EXPECT_EQ(a.reallocate(nullptr, huge), nullptr);
    a.deallocate(p, {40, 8});
  }
  EXPECT_EQ(a.stats().in_use, 0u);
}

// The whole range can be had in one block, and again after everything was freed. "[largest_free]
// the largest block there is without merging, its header included"
TEST(BestFit, IsExhaustedAndRecovers) {
  odd_buffer buffer(32 * KiB, 5);
  best_fit<> a(buffer.span());
  const std::size_t whole = a.stats().largest_free;
  EXPECT_EQ(whole, a.stats().available);
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> all;
    while (void* const p = a.allocate({100, 16})) all.push_back(p);
    EXPECT_GT(all.size(), 32 * KiB / 150);
    for (std::size_t i = 0; i < all.size(); i += 2) a.deallocate(all[i]);
    for (std::size_t i = 1; i < all.size(); i += 2) a.deallocate(all[i]);
    EXPECT_EQ(a.stats().largest_free, whole);
    void* const p = a.allocate({whole - 64, 16});
    EXPECT_NE(p, nullptr);
    a.deallocate(p);
  }
}

// "[reallocate] null allocates; a size of zero frees and returns null"
TEST(BestFit, ReallocatesAsC) {
  odd_buffer buffer(4 * KiB, 0);
  best_fit<> a(buffer.span());
  void* const p = a.reallocate(nullptr, 10);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(a.stats().in_use, 10u);
  EXPECT_EQ(a.reallocate(p, 0), nullptr);
  EXPECT_EQ(a.stats().in_use, 0u);
  void* const zero = a.reallocate(nullptr, 0);
  EXPECT_NE(zero, nullptr);  // null with a size of zero: a block of no bytes
  a.deallocate(zero);
}

// "changes the size in place" (concept can_resize): a block that is not aligned for the new layout
// cannot stay in place.
TEST(BestFit, TryResizeToAnAlignmentThatTheBlockDoesNotHave) {
  odd_buffer buffer(4 * KiB, 16);
  best_fit<> a(buffer.span());
  (void)a.allocate({40, 16});
  for (int i = 0; i < 4; ++i) {
    void* const p = a.allocate({40, 16});
    EXPECT_EQ(a.try_resize(p, {40, 16}, {40, 64}), lies_at(p, 64));
    EXPECT_FALSE(a.try_resize(p, {40, 16}, {20, 4096}));
  }
}

// "[merging] deferred: when no free block is large enough": small free neighbours serve a large
// request then.
TEST(BestFit, DeferredMergingServesALargeRequest) {
  odd_buffer buffer(16 * KiB, 0);
  best_fit<deferred> a(buffer.span());
  std::vector<void*> all;
  while (void* const p = a.allocate({200, 16})) all.push_back(p);
  for (void* const p : all) a.deallocate(p);
  void* const p = a.allocate({12'000, 16});
  EXPECT_NE(p, nullptr);
}

// "Whether p lies in the part of the range that has blocks, live or free. Safe for any value."
TEST(BestFit, OwnsTheRangeAndNothingElse) {
  odd_buffer buffer(4 * KiB, 0);
  best_fit<> a(buffer.span());
  EXPECT_FALSE(a.owns(nullptr) || a.owns(&a) || a.owns(reinterpret_cast<void*>(UINTPTR_MAX)) ||
               a.owns(buffer.span().data() - 1));
  EXPECT_FALSE(a.owns(buffer.span().data() + buffer.span().size()));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(a.owns(a.allocate({static_cast<std::size_t>(i), 1})));
}

// Checked builds name "double free, foreign pointer, wrong layout, a write behind a block of
// `best_fit`" (docs/concepts.md).
TEST(BestFitDeathTest, NamesMisuse) {
  if (!checks_callers && !FROM_DOCS_ASAN) GTEST_SKIP() << "needs HEAPWRIGHT_CHECKS=1 or AddressSanitizer";
  for (const std::size_t size : {std::size_t{8}, std::size_t{100}}) {
    odd_buffer buffer(16 * KiB, 0);
    best_fit<> a(buffer.span());
    auto* const p = static_cast<std::byte*>(a.allocate({size, 16}));
    (void)a.allocate({size, 16});
    alignas(64) std::byte foreign[64];
    EXPECT_DEATH((a.deallocate(p), a.deallocate(p)), "heapwright: double free: 0x");
    EXPECT_DEATH(a.deallocate(foreign), "heapwright: free of a foreign pointer: 0x");
    EXPECT_DEATH(a.deallocate(p + 4), "heapwright: free of a foreign pointer: 0x");
    EXPECT_DEATH(a.deallocate(p, {size + 200, 16}), "heapwright: free with a wrong layout: 0x");
    if (checks_callers && !FROM_DOCS_ASAN) {
      EXPECT_DEATH((p[size] = std::byte{1}, a.deallocate(p)), "heapwright: write past the end of a block: 0x");
    }
  }
}

TEST(BestFitDeathTest, SaysWhoFreedABlockFirstAndWhoFreedItAgain) {
  if (!checks_callers) GTEST_SKIP() << "needs HEAPWRIGHT_CHECKS=1";
  odd_buffer buffer(16 * KiB, 0);
  best_fit<> a(buffer.span());
  void* const p = a.allocate({100, 16});
  EXPECT_DEATH((a.deallocate(p), a.deallocate(p)), "it was freed by(.|\n)*freed again by");
}

}  // namespace
