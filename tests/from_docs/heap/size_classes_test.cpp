// States the docstrings of core/layout.hpp and core/size_classes.hpp; written without their code.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include <heapwright/core/layout.hpp>
#include <heapwright/core/size_classes.hpp>

namespace {

using heapwright::KiB;
using heapwright::layout;
using heapwright::size_class_plan;
using heapwright::size_list;

// "No bytes, aligned as malloc does." "Not explicit: every allocator takes a size alone"
TEST(Layout, OfASizeAloneIsAlignedAsMallocDoes) {
  EXPECT_EQ(layout{}.size, 0u);
  EXPECT_EQ(layout{}.alignment, 16u);
  const layout l = 100;
  EXPECT_EQ(l.size, 100u);
  EXPECT_EQ(l.alignment, heapwright::default_alignment);
}

// "Layout of one T."
TEST(Layout, OfATypeHasItsSizeAndAlignment) {
  struct alignas(64) line {
    char c[65];
  };
  EXPECT_EQ(layout::of<line>().size, 128u);
  EXPECT_EQ(layout::of<line>().alignment, 64u);
  EXPECT_EQ(layout::of<char>().alignment, 1u);
}

// "Layout of T[n]; empty when n * sizeof(T) overflows std::size_t."
TEST(Layout, OfAnArrayIsEmptyWhereItsSizeOverflows) {
  EXPECT_EQ(layout::array<std::uint32_t>(0)->size, 0u);
  EXPECT_EQ(layout::array<std::uint32_t>(3)->size, 12u);
  EXPECT_EQ(layout::array<std::uint32_t>(3)->alignment, 4u);
  EXPECT_EQ(layout::array<std::uint32_t>(SIZE_MAX / 4)->size, SIZE_MAX / 4 * 4);
  EXPECT_FALSE(layout::array<std::uint32_t>(SIZE_MAX / 4 + 1));
  EXPECT_FALSE(layout::array<std::uint64_t>(SIZE_MAX));
  EXPECT_EQ(layout::array<char>(SIZE_MAX)->size, SIZE_MAX);
}

// "Bytes."
TEST(Layout, UnitsArePowersOf1024) {
  EXPECT_EQ(heapwright::KiB, 1024u);
  EXPECT_EQ(heapwright::MiB, 1024u * 1024);
  EXPECT_EQ(heapwright::GiB, 1024u * 1024 * 1024);
}

// "No sizes." "Whether there are none; and the largest, or 0."
TEST(SizeList, WithoutSizesIsEmpty) {
  EXPECT_TRUE(size_list{}.empty());
  EXPECT_EQ(size_list{}.last(), 0u);
  EXPECT_TRUE(size_list{}.is_rising());
}

// "Sizes of blocks in bytes, one by one, rising"
TEST(SizeList, TellsWhetherItRisesAndWhatDividesIt) {
  EXPECT_EQ((size_list{8, 24, 64}.last()), 64u);
  EXPECT_EQ((size_list{8, 24, 64}.count), 3u);
  EXPECT_TRUE((size_list{8, 24, 64}.is_rising()));
  EXPECT_FALSE((size_list{8, 8, 64}.is_rising()));
  EXPECT_FALSE((size_list{24, 8}.is_rising()));
  EXPECT_TRUE((size_list{8, 24, 64}.are_multiples_of(8)));
  EXPECT_FALSE((size_list{8, 24, 64}.are_multiples_of(16)));
  EXPECT_FALSE((size_list{8, 25, 64}.are_multiples_of(8)));
}

// "Keeps the first `most` sizes, and counts all: a longer list is refused where a recipe is used."
TEST(SizeList, KeepsTheFirst32AndCountsAll) {
  constexpr size_list l{8,   16,  24,  32,  40,  48,  56,  64,  72,  80,  88,  96,  104, 112, 120, 128, 136,
                        144, 152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256, 264};
  EXPECT_EQ(l.count, 33u);
  EXPECT_EQ(l.sizes[size_list::most - 1], 256u);
  EXPECT_FALSE((size_class_plan{.exact = l}.exact_is_valid()));
}

// A list whose sizes have a gap: 9 to 16 bytes go where 16 go.
TEST(SizeClasses, OfAListOfEightsKeep16sAligned) {
  constexpr size_class_plan plan{.exact = {24, 40, 64}};
  ASSERT_TRUE(plan.exact_is_valid());
  EXPECT_EQ(plan.size(plan.index(8)), 24u);
  EXPECT_EQ(plan.size(plan.index(9)), 64u);
  EXPECT_EQ(plan.size(plan.index(16)), 64u);
  EXPECT_EQ(plan.size(plan.index(24)), 24u);
}

// Every class holds what index() says it holds, is the least that does, and classes rise.
void holds(const size_class_plan& plan) {
  SCOPED_TRACE(::testing::Message() << plan.steps_per_doubling << " steps to " << plan.largest << ", list to "
                                    << plan.exact.last());
  ASSERT_TRUE(plan.steps_are_valid());
  const unsigned count = plan.count();
  ASSERT_GE(count, 1u);
  for (unsigned c = 2; c <= count; ++c) ASSERT_LT(plan.size(c - 1), plan.size(c));
  ASSERT_EQ(plan.size(count), plan.largest);  // "the last class"
  for (std::size_t n = 1; n <= plan.largest; n += n < 4096 ? 1 : 97) {
    const unsigned c = plan.index(n);
    ASSERT_GE(c, 1u) << n;
    ASSERT_LE(c, count) << n;
    ASSERT_GE(plan.size(c), n);  // "The class that holds `size` bytes."
    // "A size is rounded up to a multiple of 8 first; where that is a multiple of 16, so is its
    // class."
    const std::size_t rounded = (n + 7) / 8 * 8;
    unsigned least = 1;
    while (plan.size(least) < rounded || (rounded % 16 == 0 && plan.size(least) % 16 != 0)) ++least;
    ASSERT_EQ(c, least) << n;
  }
  ASSERT_EQ(plan.index(plan.largest), count);
}

// "steps of 16 bytes up to 128, then eight steps per doubling" (docs/how-malloc-works.md)
TEST(SizeClasses, OfTheDefaultPlanAreStepsOf16AndThenEightPerDoubling) {
  constexpr size_class_plan plan;
  holds(plan);
  for (unsigned c = 1; c <= 8; ++c) EXPECT_EQ(plan.size(c), 16u * c);
  EXPECT_EQ(plan.size(plan.index(257)), 288u);
  EXPECT_EQ(plan.size(plan.index(1025)), 1152u);
  EXPECT_EQ(plan.index(1), plan.index(16));
  for (std::size_t n = 129; n < plan.largest; n += 13)  // "8 (at most 1/8 lost)"
    ASSERT_LE(plan.size(plan.index(n)) - n, n / 8) << n;
}

// "Up to here class c holds 16 * c bytes: the first doubling after the linear end has steps of 16
// too."
TEST(SizeClasses, AreEvenUpToEvenUpTo) {
  for (const std::size_t k : {1, 2, 4, 8, 16, 32}) {
    const size_class_plan plan{.steps_per_doubling = k};
    for (unsigned c = 1; c <= plan.even_up_to() / 16; ++c) ASSERT_EQ(plan.size(c), 16 * c) << k;
    ASSERT_NE(plan.size(static_cast<unsigned>(plan.even_up_to() / 16) + 1), plan.even_up_to() + 16) << k;
  }
}

// "steps_per_doubling: k: a power of two", "largest: the last class, a power of two"
TEST(SizeClasses, HoldForEveryValidPlan) {
  for (const std::size_t k : {1, 2, 4, 8, 16})
    for (const std::size_t largest : {4 * KiB, 32 * KiB, 256 * KiB})
      holds({.steps_per_doubling = k, .largest = largest});
}

TEST(SizeClasses, OfOneStepPerDoublingArePowersOfTwo) {
  constexpr size_class_plan plan{.steps_per_doubling = 1};
  for (unsigned c = 1; c <= plan.count(); ++c) ASSERT_EQ(plan.size(c) & (plan.size(c) - 1), 0u);
}

// "the first sizes one by one": "The first classes, instead of steps"
TEST(SizeClasses, OfAListAreTheListAndThenTheSteps) {
  constexpr size_class_plan plan{.exact = {48, 112, 256}};
  ASSERT_TRUE(plan.exact_is_valid());
  ASSERT_TRUE(plan.exact_meets_steps());
  holds(plan);
  EXPECT_EQ(plan.size(1), 48u);
  EXPECT_EQ(plan.size(2), 112u);
  EXPECT_EQ(plan.size(3), 256u);
  EXPECT_EQ(plan.size(4), 288u);
  EXPECT_EQ(plan.granule(), 16u);
}

// "multiples of 8": "what sizes differ by, at least, that have different classes; and what every
// block is aligned to"
TEST(SizeClasses, OfAListOfEightsHaveAGranuleOf8) {
  constexpr size_class_plan plan{.exact = {16, 24, 32, 40, 64}};
  ASSERT_TRUE(plan.exact_is_valid());
  ASSERT_TRUE(plan.exact_meets_steps());
  holds(plan);
  EXPECT_EQ(plan.granule(), 8u);
  EXPECT_EQ(plan.size(plan.index(9)), 16u);
  EXPECT_EQ(plan.size(plan.index(17)), 24u);
}

// "Whether the members keep the rules that stand beside them."
TEST(SizeClasses, ThatBreakARuleAreNotValid) {
  EXPECT_FALSE((size_class_plan{.steps_per_doubling = 3}.steps_are_valid()));
  EXPECT_FALSE((size_class_plan{.steps_per_doubling = 0}.steps_are_valid()));
  EXPECT_FALSE((size_class_plan{.largest = 100 * KiB}.steps_are_valid()));
  EXPECT_FALSE((size_class_plan{.exact = {24, 16}}.exact_is_valid()));
  EXPECT_FALSE((size_class_plan{.exact = {20, 32}}.exact_is_valid()));
  EXPECT_FALSE((size_class_plan{.exact = {8, 16}}.exact_is_valid()));  // "from 16 on"
}

// "Whether the last size of `exact` is one that the steps have too."
TEST(SizeClasses, MeetTheStepsOnlyInASizeThatTheStepsHave) {
  EXPECT_TRUE((size_class_plan{.exact = {48, 288}}.exact_meets_steps()));
  EXPECT_FALSE((size_class_plan{.exact = {48, 272}}.exact_meets_steps()));  // 256, 288
  EXPECT_FALSE((size_class_plan{.exact = {8, 24}}.exact_meets_steps()));    // no multiple of 16
}

}  // namespace
