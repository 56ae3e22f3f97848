// Each combinator with each capability: what a part can do, the whole can do, and does it to the
// block that is meant. A part that can do nothing more than allocate and deallocate adds nothing.
#include <heapwright/kit.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "support/strict_source.hpp"

namespace heapwright {
namespace {

using testing::strict_source;

/// No more than an allocator must be able to do.
struct two_functions {
  void* allocate(layout l) noexcept { return upstream_malloc{}.allocate(l); }
  void deallocate(void* p, layout l) noexcept { upstream_malloc{}.deallocate(p, l); }
};
static_assert(allocator<two_functions>);

constexpr std::size_t range = 256 * KiB;

/// Every capability for blocks of any layout: a best-fit heap with its memory. Counts the calls of
/// trim, which that has not.
class everything : public best_fit<> {
 public:
  everything() { EXPECT_TRUE(attach({memory_.get(), range})); }
  std::size_t trim() noexcept {
    ++trims;
    return 100;
  }
  std::size_t trims = 0;

 private:
  std::unique_ptr<std::byte[]> memory_{new std::byte[range]};
};
static_assert(can_own<everything> && can_deallocate_unsized<everything> && has_usable_size<everything> &&
              can_resize<everything> && can_reallocate<everything> && can_reset<everything> && can_trim<everything> &&
              has_stats<everything>);

// A bit for each.
constexpr unsigned owning = 1, unsized = 2, one_layout = 4, usable = 8, resizing = 16, reallocating = 32,
                   resetting = 64, trimming = 128, stating = 256;

template <class A>
constexpr unsigned capabilities =
    (can_own<A> ? owning : 0) | (can_deallocate_unsized<A> ? unsized : 0) | (has_one_layout<A> ? one_layout : 0) |
    (has_usable_size<A> ? usable : 0) | (can_resize<A> ? resizing : 0) | (can_reallocate<A> ? reallocating : 0) |
    (can_reset<A> ? resetting : 0) | (can_trim<A> ? trimming : 0) | (has_stats<A> ? stating : 0);

constexpr unsigned all = owning | unsized | usable | resizing | reallocating | resetting | trimming | stating;
static_assert(capabilities<everything> == all);

static_assert(capabilities<upstream<everything>> == all);
static_assert(capabilities<shared<everything>> == all);
static_assert(capabilities<metered<everything>> == all);
static_assert(capabilities<poisoned<everything>> == all);
static_assert(capabilities<guarded<everything>> == all);
static_assert(capabilities<leak_checked<everything>> == all);
static_assert(capabilities<concurrent_best_fit<>> == (all & ~trimming));
static_assert(capabilities<fallback<everything, everything>> == all);
static_assert(capabilities<segregate<64, everything, everything>> == all);

constexpr unsigned of_pool = owning | unsized | one_layout | usable | resetting | trimming | stating;
static_assert(capabilities<pool<>> == of_pool && capabilities<slab<>> == of_pool);
static_assert(capabilities<upstream<pool<>>> == of_pool);
static_assert(capabilities<shared<pool<>>> == of_pool);
static_assert(capabilities<concurrent_pool<>> == of_pool && capabilities<concurrent_slab<>> == of_pool);
static_assert(capabilities<metered<pool<>>> == of_pool);
static_assert(capabilities<poisoned<pool<>>> == of_pool);
static_assert(capabilities<guarded<pool<>>> == of_pool);
static_assert(capabilities<leak_checked<pool<>>> == of_pool);
static_assert(capabilities<fallback<pool<>, pool<>>> == (of_pool & ~one_layout));
static_assert(capabilities<segregate<64, pool<>, pool<>>> == (of_pool & ~one_layout));
static_assert(capabilities<bucketed<pool<>>> == ((of_pool & ~one_layout) | resizing));
static_assert(capabilities<bucketed<slab<>>> == ((of_pool & ~one_layout) | resizing));

// What a combinator brings itself: guarded knows its blocks' layouts, and checks them.
static_assert(capabilities<upstream<two_functions>> == 0);
static_assert(capabilities<shared<two_functions>> == 0);
static_assert(capabilities<metered<two_functions>> == 0);
static_assert(capabilities<poisoned<two_functions>> == 0);
static_assert(capabilities<guarded<two_functions>> == (unsized | usable));
static_assert(capabilities<leak_checked<two_functions>> == 0);
static_assert(capabilities<fallback<everything, two_functions>> == (resizing | trimming));
static_assert(capabilities<segregate<64, two_functions, everything>> == (resizing | trimming));

/// Live bytes of the parts, as they round them.
template <class A>
std::size_t in_use(const A& a) {
  return a.stats().in_use;
}

/// Uses every capability on blocks of all sizes up to `largest`.
template <class A>
void works(A& a, std::size_t largest) {
  constexpr unsigned can = capabilities<A>;
  const std::size_t empty = in_use(a);
  std::vector<std::pair<unsigned char*, std::size_t>> blocks;
  for (std::size_t size = 1; size <= largest; size += 7) {
    auto* const p = static_cast<unsigned char*>(a.allocate(size));
    ASSERT_NE(p, nullptr) << size;
    EXPECT_TRUE(is_aligned(p, default_alignment));
    std::memset(p, static_cast<int>(size), size);
    blocks.emplace_back(p, size);
    EXPECT_TRUE(a.owns(p)) << size;
    EXPECT_GE(a.usable_size(p), size);
  }
  int local = 0;
  EXPECT_FALSE(a.owns(&local));
  EXPECT_FALSE(a.owns(nullptr));
  EXPECT_GT(in_use(a), empty);
  EXPECT_LE(in_use(a), a.stats().held);
  if constexpr ((can & resizing) != 0) {
    for (auto& [p, size] : blocks) {
      if (a.try_resize(p, size, size - size / 2)) size -= size / 2;
    }
  }
  if constexpr ((can & reallocating) != 0) {
    for (auto& [p, size] : blocks) {
      auto* const moved = static_cast<unsigned char*>(a.reallocate(p, size + 30));
      ASSERT_NE(moved, nullptr);
      EXPECT_EQ(moved[0], moved[size - 1]);
      EXPECT_GE(a.usable_size(moved), size + 30);
      p = moved;
      size += 30;
    }
    EXPECT_EQ(a.reallocate(a.allocate(10), 0), nullptr) << "a size of zero frees";
    void* const fresh = a.reallocate(nullptr, 10);
    EXPECT_NE(fresh, nullptr);
    EXPECT_EQ(a.reallocate(fresh, PTRDIFF_MAX), nullptr);
    EXPECT_TRUE(a.owns(fresh)) << "a reallocation that fails leaves the block";
    a.deallocate(fresh);
  }
  a.deallocate(nullptr);
  a.deallocate(nullptr, 8);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [p, size] = blocks[i];
    EXPECT_EQ(p[0], p[std::min<std::size_t>(size, 1 + i) - 1]);
    if (i % 2 == 0) {
      a.deallocate(p);
    } else {
      a.deallocate(p, size);
    }
  }
  EXPECT_EQ(in_use(a), empty);
  ASSERT_NE(a.allocate(5), nullptr);
  a.reset();
  EXPECT_EQ(in_use(a), empty);
  EXPECT_GT(a.trim(), 0U);
}

TEST(Capabilities, PassThroughEveryCombinator) {
  everything of_others;
  upstream<everything> by_reference(of_others);
  works(by_reference, 500);
  shared<everything> locked;
  works(locked, 500);
  metered<everything> counted;
  works(counted, 500);
  EXPECT_EQ(counted.reading().in_use, 0U);
  EXPECT_EQ(counted.reading().live_blocks(), 0U);
  poisoned<everything> watched;
  works(watched, 500);
  guarded<everything> with_canaries;
  works(with_canaries, 500);
  leak_checked<everything> checked;
  works(checked, 500);
  fallback<everything, everything> two;
  works(two, 500);
  segregate<64, everything, everything> by_size;
  works(by_size, 500);
}

TEST(Capabilities, PassThroughEveryCombinatorOfPools) {
  const layout block{64};
  pool<> of_others(block);
  upstream<pool<>> by_reference(of_others);
  works(by_reference, 64);
  shared<pool<>> locked(block);
  works(locked, 64);
  concurrent_pool<> cached(block);
  EXPECT_EQ(cached.usable_size(cached.allocate()), 64U);
  metered<pool<>> counted(block);
  works(counted, 64);
  poisoned<pool<>> watched(block);
  works(watched, 64);
  guarded<pool<>> with_canaries(block);
  works(with_canaries, 64);
  leak_checked<pool<>> checked(block);
  works(checked, 64);
  fallback<pool<>, pool<>> two(from(block), from(block));
  works(two, 64);
  segregate<32, pool<>, pool<>> by_size(from(layout{32}), from(block));
  works(by_size, 64);
  bucketed<pool<>, 256> buckets;
  works(buckets, 256);
  bucketed<slab<>, 256> slabs;
  works(slabs, 256);
  bucketed<guarded<pool<>>, 256> guarded_buckets;
  works(guarded_buckets, 256);
  bucketed<metered<slab<>>, 256> metered_buckets;
  works(metered_buckets, 256);
}

TEST(Capabilities, OneLayoutPassesThrough) {
  const layout block{40, 8};
  guarded<pool<>> with_canaries(block);
  void* const p = with_canaries.allocate();
  EXPECT_EQ(with_canaries.usable_size(p), 40U);
  with_canaries.deallocate(p);
  metered<leak_checked<pool<>>> both(block);
  void* const q = both.allocate();
  EXPECT_GE(both.reading().in_use, 40U);
  both.deallocate(q);
  EXPECT_EQ(both.reading().in_use, 0U);
  pool<> blocks(block);
  upstream<pool<>> by_reference(blocks);
  void* const r = by_reference.allocate();
  EXPECT_TRUE(blocks.owns(r));
  by_reference.deallocate(r);
}

/// The malloc and free of a program that has slabs segregated by size, and nothing else.
TEST(Capabilities, FreeOnSegregatedSlabsNeedsNoSize) {
  using slabs = bucketed<slab<>, 512>;
  fallback<slabs, guarded<upstream_malloc>> memory{from(), from()};
  std::vector<void*> blocks;
  for (std::size_t size = 0; size < 2000; size += 13) blocks.push_back(memory.allocate(size));
  for (void* const p : blocks) memory.deallocate(p);
  EXPECT_EQ(memory.first().stats().in_use, 0U);
}

TEST(Capabilities, AReallocationCrossesTheLimitOfSegregate) {
  segregate<64, everything, everything> by_size;
  auto* p = static_cast<char*>(by_size.allocate(60));
  std::memset(p, 'x', 60);
  p = static_cast<char*>(by_size.reallocate(p, 1000));
  EXPECT_TRUE(by_size.large().owns(p));
  EXPECT_EQ(p[59], 'x');
  p = static_cast<char*>(by_size.reallocate(p, 50));
  EXPECT_TRUE(by_size.small().owns(p));
  EXPECT_EQ(p[49], 'x');
  by_size.deallocate(p, 50);
  EXPECT_EQ(by_size.stats().in_use, 0U);
}

TEST(Capabilities, AReallocationLeavesTheFirstPartOfAFallbackWhenThatIsFull) {
  fallback<everything, everything> two;
  auto* const p = static_cast<char*>(two.allocate(range / 4 * 3));
  ASSERT_TRUE(two.first().owns(p));
  *p = 'x';
  auto* const q = static_cast<char*>(two.allocate(100));
  auto* const moved = static_cast<char*>(two.reallocate(q, range / 2));
  EXPECT_TRUE(two.second().owns(moved));
  EXPECT_EQ(*p, 'x');
}

template <class A>
void ignores_null(A&& a) {
  a.deallocate(nullptr, layout{8, 8});
  if constexpr (can_deallocate_unsized<std::remove_reference_t<A>>) a.deallocate(nullptr);
  void* const p = a.allocate(layout{8, 8});
  EXPECT_NE(p, nullptr);
  a.deallocate(p, layout{8, 8});
}

template <class C>
void is_a_source_by_value() {
  pool<> chunks(layout{64 * KiB, 64 * KiB});
  C of_chunks{upstream<pool<>>(chunks)};
  arena<C> a(of_chunks);
  EXPECT_TRUE(chunks.owns(a.allocate(10)));
}

TEST(Capabilities, ACombinatorOfAReferenceIsASourceByValue) {
  is_a_source_by_value<guarded<upstream<pool<>>>>();
  is_a_source_by_value<poisoned<upstream<pool<>>>>();
}

TEST(Capabilities, FreeOfNullDoesNothingAnywhere) {
  const layout block{8, 8};
  ignores_null(arena<>());
  ignores_null(stack_arena<100>());
  ignores_null(pool<>(block));
  ignores_null(slab<>(block));
  ignores_null(everything());
  ignores_null(concurrent_pool<>(block));
  ignores_null(concurrent_slab<>(block));
  const std::unique_ptr<std::byte[]> shared_range(new std::byte[range]);
  ignores_null(concurrent_best_fit<>(std::span(shared_range.get(), range)));
  ignores_null(bucketed<pool<>>());
  ignores_null(guarded<pool<>>(block));
  ignores_null(leak_checked<pool<>>(block));
  ignores_null(metered<pool<>>(block));
  ignores_null(poisoned<pool<>>(block));
  ignores_null(shared<pool<>>(block));
  ignores_null(fallback<pool<>, upstream_malloc>(from(block)));
  ignores_null(segregate<64, pool<>, upstream_malloc>(from(block)));
  ignores_null(guarded<upstream_malloc>());
  ignores_null(leak_checked<upstream_malloc>());
  ignores_null(metered<upstream_malloc>());
  ignores_null(poisoned<upstream_malloc>());
  ignores_null(upstream_new());
  ignores_null(system_pages());
  ignores_null(system_huge_pages());
  ignores_null(system_guard_pages());
  std::byte memory[100];
  ignores_null(buffer_source(memory));
}

}  // namespace
}  // namespace heapwright
