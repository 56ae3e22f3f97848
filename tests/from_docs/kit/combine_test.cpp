// States what the documentation says of the combinators that route and count: fallback, segregate,
// bucketed, metered, locked. Written without the code.
#include <cstring>

#include <heapwright/kit.hpp>

#include "model.hpp"

namespace {

using namespace heapwright;
using namespace from_docs;
using strict = upstream<strict_source>;

// "From First, and from Second when First returns null. Null when both do." "Asks First whether it
// owns p, and frees in Second if it does not."
TEST(Fallback, TheSecondServesWhatTheFirstCannot) {
  strict_source source;
  {
    fallback<pool<no_source>, strict> nothing_first{from(layout{64, 8}), from(source)};
    walk_all(refer_to(nothing_first), any_layout(5000, 64 * KiB));
    fallback<arena<no_source>, strict> small_first{from(std::span<std::byte>{}), from(source)};
    walk_all(refer_to(small_first), any_layout(5000, 64 * KiB));
  }
  strict_source first_source(3), second_source;
  fallback<pool<strict>, strict> a{from(layout{64, 8}, first_source, 1 * KiB), from(second_source)};
  walk_all(refer_to(a), any_layout(200, 64));
  EXPECT_EQ(second_source.live(), 0u);
  live_blocks live;
  for (int i = 0; i < 100; ++i) live.add(a.allocate({64, 8}), {64, 8});
  EXPECT_EQ(a.first().stats().in_use + 64 * second_source.live(), 64u * 100);
  EXPECT_GT(second_source.live(), 0u);
  second_source.limit = 0;
  EXPECT_EQ(a.allocate({1000, 8}), nullptr);
  while (!live.empty()) {
    const auto b = live.remove(live.size() / 2);
    a.deallocate(b.at, b.asked);
  }
  EXPECT_EQ(a.first().stats().in_use, 0u);
  a.deallocate(nullptr, {64, 8});
}

// "As above, where both parts can free without a layout." "[usable_size] as the part says that has
// the block" "[trim] of one part is enough"
TEST(Fallback, FreesWithoutALayout) {
  strict_source source(1);
  fallback<pool<strict>, slab<>> a{from(layout{64, 8}, source, 1 * KiB), from(layout{256, 8})};
  walk_all(refer_to_unsized(a), any_layout(256, 8));
  void* const large = a.allocate({200, 8});
  void* const small = a.allocate({64, 8});
  EXPECT_TRUE(a.owns(large) && a.owns(small));
  EXPECT_EQ(a.usable_size(large), 256u);
  EXPECT_EQ(a.usable_size(small), 64u);
  EXPECT_EQ(a.stats().in_use, 256u + 64u);  // "stats are sums"
  a.reset();
  EXPECT_EQ(a.stats().in_use, 0u);
  EXPECT_EQ(a.stats().held, a.first().stats().held + a.second().stats().held);
  const auto held = a.stats().held;
  EXPECT_EQ(a.trim(), held);
  static_assert(can_trim<fallback<pool<>, upstream_malloc>> && !can_reset<fallback<pool<>, upstream_malloc>>);
  static_assert(!can_own<fallback<pool<>, upstream_malloc>> &&
                can_deallocate_unsized<fallback<pool<>, upstream_malloc>>);
}

// "`reallocate` moves the block where it cannot stay in its part"
template <class A>
void reallocates(A& a, std::size_t largest) {
  random_bits random(5);
  live_blocks live;
  for (int i = 0; i < 400; ++i) {
    const std::size_t size = random() % largest + 1;
    if (live.size() < 10) {
      if (void* const p = a.reallocate(nullptr, size)) live.add(p, {size, default_alignment});
      continue;
    }
    const auto old = live.remove(random() % live.size());
    if (random() % 5 == 0) {
      EXPECT_EQ(a.reallocate(old.at, 0), nullptr);
      continue;
    }
    auto* const p = static_cast<std::byte*>(a.reallocate(old.at, size));
    if (p == nullptr) {
      live.add(old.at, old.asked);
      continue;
    }
    for (std::size_t k = 0; k < std::min(size, old.asked.size); ++k) ASSERT_EQ(p[k], std::byte{old.mark});
    live.add(p, {size, default_alignment});
  }
  while (!live.empty()) a.deallocate(live.remove(0).at);
}

TEST(Fallback, ReallocatesAcrossItsParts) {
  odd_buffer first(4 * KiB, 1), second(64 * KiB, 2);
  fallback<best_fit<>, best_fit<>> a{from(first.span()), from(second.span())};
  reallocates(a, 2000);
  EXPECT_EQ(a.stats().in_use, 0u);
  void* const p = a.reallocate(nullptr, 3000);
  EXPECT_TRUE(a.first().owns(p));
  void* const q = a.reallocate(p, 20'000);
  EXPECT_TRUE(a.second().owns(q));
  EXPECT_EQ(a.first().stats().in_use, 0u);
  EXPECT_EQ(a.reallocate(q, 70'000), nullptr);  // "no memory, and p is as it was"
  EXPECT_EQ(a.stats().in_use, 20'000u);
  a.deallocate(q);
}

// "Requests of up to `Largest` bytes go to Small, others to Large; neither stands in for the
// other."
TEST(Segregate, TheSizeChooses) {
  strict_source small(0), large;
  segregate<100, strict, strict> a{from(small), from(large)};
  for (const std::size_t size : {0u, 1u, 99u, 100u}) EXPECT_EQ(a.allocate({size, 1}), nullptr);
  EXPECT_EQ(large.requests.size(), 0u);
  void* const p = a.allocate({101, 1});
  EXPECT_EQ(large.live(), 1u);
  a.deallocate(p, {101, 1});
  small.limit = SIZE_MAX;
  walk_all(refer_to(a), any_layout(1000, 64 * KiB));
  EXPECT_GT(small.requests.size(), 0u);
  for (const layout& l : small.requests) EXPECT_LE(l.size, 100u);
  for (const layout& l : large.requests) EXPECT_GT(l.size, 100u);
  a.deallocate(nullptr, {1, 1});
  a.deallocate(nullptr, {1000, 1});
}

// "[reallocate] The block moves where it crosses the limit." "[try_resize] Never across the limit."
// "[deallocate] Without a layout, Small is asked whether it owns p."
TEST(Segregate, ResizesWithinItsParts) {
  odd_buffer first(16 * KiB, 1), second(64 * KiB, 2);
  segregate<128, best_fit<>, best_fit<>> a{from(first.span()), from(second.span())};
  reallocates(a, 400);
  EXPECT_EQ(a.stats().in_use, 0u);
  void* p = a.allocate({100, 16});
  EXPECT_TRUE(a.small().owns(p) && a.owns(p));
  EXPECT_FALSE(a.try_resize(p, {100, 16}, {129, 16}));
  EXPECT_TRUE(a.try_resize(p, {100, 16}, {50, 16}));
  p = a.reallocate(p, 129);
  EXPECT_TRUE(a.large().owns(p));
  EXPECT_FALSE(a.try_resize(p, {129, 16}, {128, 16}));
  p = a.reallocate(p, 128);
  EXPECT_TRUE(a.small().owns(p));
  a.deallocate(p);
  EXPECT_EQ(a.stats().in_use, 0u);
  walk_all(refer_to_unsized(a), any_layout(300, 64));
}

// "Requests of up to `Largest` bytes, at alignments up to `Step`; null for others". "A request goes
// to the smallest that holds it, so rounding wastes less than `Step` bytes"
template <std::size_t Largest, std::size_t Step>
void buckets_hold_their_sizes() {
  strict_source source;
  bucketed<pool<strict>, Largest, Step> a(strict{source}, 4 * KiB);
  static_assert(decltype(a)::count == Largest / Step);
  for (std::size_t size = 0; size <= Largest + 2; ++size) {
    for (std::size_t alignment = 1; alignment <= 4 * Step; alignment *= 2) {
      const layout l{size, alignment};
      const bool fits = size <= Largest && alignment <= Step;
      EXPECT_EQ(a.fits(l), fits) << size << " at " << alignment;
      void* const p = a.allocate(l);
      EXPECT_EQ(p != nullptr, fits);
      if (p == nullptr) continue;
      EXPECT_TRUE(lies_at(p, alignment));
      std::memset(p, 1, size);
      EXPECT_TRUE(a.owns(p) && a.bucket_for(size).owns(p));
      EXPECT_GE(a.usable_size(p), size);
      if (size > 0 && Step >= 16) {
        EXPECT_LT(a.usable_size(p), size + Step);
      }
      a.deallocate(p, l);
    }
  }
  EXPECT_EQ(a.allocate({SIZE_MAX, 1}), nullptr);
  EXPECT_EQ(a.allocate({SIZE_MAX - Step + 2, 1}), nullptr);
  walk_all(refer_to(a), any_layout(Largest + 20, Step));
  walk_all(refer_to_unsized(a), any_layout(Largest, Step));
  EXPECT_EQ(a.stats().in_use, 0u);
  EXPECT_EQ(a.stats().held, source.live_bytes());
  const auto held = a.stats().held;
  EXPECT_EQ(a.trim(), held);
}

TEST(Bucketed, EachSizeHasABucket) {
  buckets_hold_their_sizes<512, 16>();
  buckets_hold_their_sizes<256, 8>();
  buckets_hold_their_sizes<64, 64>();
  buckets_hold_their_sizes<256, 32>();
}

// "In place when both sizes share a bucket." "bucketed has no `reallocate`"
TEST(Bucketed, ResizesWithinABucket) {
  bucketed<slab<>, 512, 16> a;
  static_assert(!can_reallocate<decltype(a)>);
  for (std::size_t from = 1; from <= 512; from += 5) {
    void* const p = a.allocate({from, 16});
    for (std::size_t to = 1; to <= 600; to += 7) {
      EXPECT_EQ(a.try_resize(p, {from, 16}, {to, 16}), to <= 512 && (from + 15) / 16 == (to + 15) / 16)
          << from << " to " << to;
    }
    EXPECT_FALSE(a.try_resize(p, {from, 16}, {from, 64}));  // no bucket has such a block
    a.deallocate(p, {from, 16});
  }
}

// "in_use and peak count a block as the allocator rounds it, where that tells, otherwise as it was
// asked for"; sizes "[k]: allocations of 2^(k-1) .. 2^k - 1 bytes; [0]: of none"
TEST(Metered, CountsAsAModelDoes) {
  strict_source source;
  metered<strict> a{source};
  meter model;
  random_bits random(1);
  live_blocks live;
  for (int i = 0; i < 1000; ++i) {
    if (live.empty() || random() % 2 == 0) {
      const layout l = any_layout(3000, 4096)(random);
      source.limit = random() % 10 == 0 ? 0 : SIZE_MAX;
      void* const p = a.allocate(l);
      if (p == nullptr) {
        ++model.failures;
        continue;
      }
      live.add(p, l);
      ++model.allocations;
      model.total_bytes += l.size;
      std::size_t k = 0;
      while (l.size >> k != 0) ++k;
      ++model.sizes[k];
    } else {
      const auto b = live.remove(random() % live.size());
      a.deallocate(b.at, b.asked);
      a.deallocate(nullptr, b.asked);  // "Null does nothing and is not counted."
      ++model.deallocations;
    }
    model.in_use = live.bytes();
    model.peak = std::max(model.peak, model.in_use);
    const meter& m = a.reading();
    ASSERT_EQ(m.allocations, model.allocations);
    ASSERT_EQ(m.deallocations, model.deallocations);
    ASSERT_EQ(m.failures, model.failures);
    ASSERT_EQ(m.total_bytes, model.total_bytes);
    ASSERT_EQ(m.in_use, model.in_use);
    ASSERT_EQ(m.peak, model.peak);
    ASSERT_EQ(m.sizes, model.sizes);
    ASSERT_EQ(m.live_blocks(), live.size());
  }
  while (!live.empty()) {
    const auto b = live.remove(0);
    a.deallocate(b.at, b.asked);
  }
  EXPECT_EQ(metered<no_source>{}.allocate({SIZE_MAX, 1}), nullptr);
}

// "[try_resize] Changes `in_use` where it succeeds; counts nothing else." "[reallocate] Counts as a
// change of size, or as an allocation or a free where it is one." "[reset] Counts a deallocation
// for each live block."
TEST(Metered, CountsResizesAndResets) {
  odd_buffer buffer(16 * KiB, 0);
  metered<best_fit<>> a{buffer.span()};
  void* p = a.allocate({100, 16});
  EXPECT_EQ(a.reading().in_use, a.usable_size(p));
  ASSERT_TRUE(a.try_resize(p, {100, 16}, {1000, 16}));
  EXPECT_EQ(a.reading().in_use, a.usable_size(p));
  EXPECT_EQ(a.reading().peak, a.usable_size(p));
  EXPECT_EQ(a.reading().allocations, 1u);
  p = a.reallocate(p, 3000);
  EXPECT_EQ(a.reading().in_use, a.usable_size(p));
  EXPECT_EQ(a.reading().allocations, 1u);
  EXPECT_EQ(a.reading().deallocations, 0u);
  EXPECT_EQ(a.reallocate(p, 0), nullptr);
  EXPECT_EQ(a.reading().deallocations, 1u);
  EXPECT_EQ(a.reading().in_use, 0u);
  EXPECT_NE(a.reallocate(nullptr, 10), nullptr);
  EXPECT_EQ(a.reading().allocations, 2u);
  (void)a.allocate({20, 8});
  EXPECT_EQ(a.reading().live_blocks(), 2u);
  a.reset();
  EXPECT_EQ(a.reading().live_blocks(), 0u);
  EXPECT_EQ(a.reading().in_use, 0u);
  EXPECT_EQ(a.reading().deallocations, 3u);
}

// "A with a meter, of which Report is told each time it changes."
struct told {
  int times = 0;
  std::size_t in_use = 0;
  void update(const meter& m) noexcept {
    ++times;
    in_use = m.in_use;
  }
};

TEST(Metered, TellsItsReport) {
  metered<pool<>, told> a{layout{64, 8}};
  void* const p = a.allocate();  // "Counts the bytes of a block."
  EXPECT_EQ(a.report().times, 1);
  EXPECT_EQ(a.report().in_use, 64u);
  EXPECT_EQ(a.allocate({65, 8}), nullptr);
  EXPECT_EQ(a.report().times, 2);
  EXPECT_EQ(a.reading().failures, 1u);
  a.deallocate(p);
  EXPECT_EQ(a.report().times, 3);
  EXPECT_EQ(a.report().in_use, 0u);
  (void)a.part().allocate();  // "What is allocated there directly is not counted."
  EXPECT_EQ(a.reading().allocations, 1u);
}

// "Has the capabilities of A." "Calls f(A&) with the lock held"
TEST(Locked, IsTheAllocatorUnderALock) {
  odd_buffer buffer(64 * KiB, 3);
  shared<best_fit<>> a{buffer.span()};
  static_assert(can_own<decltype(a)> && can_reallocate<decltype(a)> && can_reset<decltype(a)> &&
                has_stats<decltype(a)>);
  static_assert(has_one_layout<shared<pool<>>> && can_trim<shared<pool<>>>);
  reallocates(a, 1000);
  walk_all(refer_to(a), any_layout(1000, 4096));
  EXPECT_EQ(a.with([](best_fit<>& part) { return part.stats().in_use; }), 0u);
  EXPECT_THROW(a.with([](best_fit<>&) { throw 1; }), int);
  EXPECT_NE(a.allocate({1, 1}), nullptr);  // what threw has released the lock
}

// Combinators of combinators: "A combinator is an allocator made of allocators".
TEST(Combinators, AreAllocatorsThemselves) {
  odd_buffer buffer(256 * KiB, 9);
  metered<segregate<256, bucketed<slab<>, 256>, fallback<best_fit<>, upstream_malloc>>> a{
      from(), from(from(buffer.span()), from())};
  walk_all(refer_to(a), any_layout(100'000, 16));
  walk_all(refer_to_unsized(a.part()), any_layout(100'000, 16));
  EXPECT_EQ(a.reading().live_blocks(), 0u);
  EXPECT_EQ(a.reading().in_use, 0u);
}

}  // namespace
