// Layouts, bitmaps of bins, hashes, size classes and the tables that recipes make of them.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <string>

#include <heapwright/core/bin_bitmap.hpp>
#include <heapwright/core/exact_divisor.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/core/layout.hpp>
#include <heapwright/core/text.hpp>
#include <heapwright/heap/class_table.hpp>

namespace heapwright {
namespace {

TEST(Layout, ArrayRefusesOverflow) {
  EXPECT_EQ(layout::array<std::uint64_t>(3), (layout{24, 8}));
  EXPECT_EQ(layout::array<std::uint64_t>(SIZE_MAX / 8 + 1), std::nullopt);
}

/// Against the processor's division, near each power of two too: negative differences wrap around.
TEST(ExactDivisor, TellsMultiplesFromAllOtherNumbers) {
  std::mt19937_64 random(7);
  for (const std::uint64_t divisor : {1, 2, 3, 5, 8, 24, 48, 96, 1000, 4096, 81920, 999'983}) {
    const exact_divisor by(divisor);
    const auto expect_exact = [&](std::uint64_t n) {
      if (n % divisor == 0) {
        ASSERT_EQ(by.quotient(n), n / divisor) << n << " / " << divisor;
      } else {
        ASSERT_GT(by.quotient(n), UINT64_MAX / divisor) << n << " / " << divisor;
      }
    };
    for (std::uint64_t near = 1; near != 0; near <<= 1) {
      for (std::uint64_t n = near - 20; n != near + 20; ++n) expect_exact(n);
    }
    for (int i = 0; i < 10'000; ++i) {
      const std::uint64_t n = random();
      expect_exact(n);
      expect_exact(n - n % divisor);
    }
  }
}

/// Against a std::set, for every bin that can be asked for.
template <std::size_t Count>
void expect_like_a_set(std::size_t members, unsigned seed) {
  bin_bitmap<Count> bins;
  std::set<std::size_t> model;
  std::mt19937 random(seed);
  for (std::size_t step = 0; step < members; ++step) {
    const std::size_t bin = random() % Count;
    if (random() % 3 == 0) {
      bins.erase(bin);
      model.erase(bin);
    } else {
      bins.insert(bin);
      model.insert(bin);
    }
  }
  for (std::size_t bin = 0; bin <= Count; ++bin) {
    const auto above = model.lower_bound(bin);
    if (bin < Count) {
      ASSERT_EQ(bins.contains(bin), model.contains(bin)) << bin;
      ASSERT_EQ(bins.first_from(bin), above == model.end() ? bins.none : *above) << bin;
    }
    ASSERT_EQ(bins.last_before(bin), above == model.begin() ? bins.none : *std::prev(above)) << bin;
  }
}

TEST(BinBitmap, FindsTheNearestBinThatIsInIt) {
  for (const std::size_t members : {0, 1, 2, 5, 50, 1000}) {
    expect_like_a_set<1>(members, 1);
    expect_like_a_set<63>(members, 2);
    expect_like_a_set<64>(members, 3);
    expect_like_a_set<65>(members, 4);
    expect_like_a_set<300>(members, 5);
    expect_like_a_set<4096>(members, 6);
  }
}

TEST(BinBitmap, IsEmptyAgainWhenEachBinIsErased) {
  bin_bitmap<200> bins;
  for (std::size_t bin = 0; bin < 200; ++bin) bins.insert(bin);
  for (std::size_t bin = 0; bin < 200; ++bin) bins.erase(bin);
  EXPECT_EQ(bins.first_from(0), bins.none);
  EXPECT_EQ(bins.last_before(200), bins.none);
}

TEST(FibonacciHash, SpreadsKeysThatLieCloseTogether) {
  std::array<int, 16> hits{};
  for (std::uint64_t page = 0; page < 1600; ++page) ++hits[fibonacci_hash(page) >> 60];
  for (const int n : hits) EXPECT_NEAR(n, 100, 3);
}

class SizeClasses : public ::testing::TestWithParam<std::size_t> {
 protected:
  size_class_plan plan{.steps_per_doubling = GetParam(), .largest = 64 * KiB};
};

TEST_P(SizeClasses, EverySizeGetsTheSmallestClassThatHoldsIt) {
  for (std::size_t size = 0; size <= plan.largest; ++size) {
    const unsigned c = plan.index(size);
    ASSERT_GE(c, 1u);
    ASSERT_LE(c, plan.count());
    ASSERT_GE(plan.size(c), size);
    ASSERT_TRUE(c == 1 || plan.size(c - 1) < size);
  }
}

TEST_P(SizeClasses, BlocksAreAlignedAndPowersOfTwoAreClasses) {
  for (unsigned c = 1; c <= plan.count(); ++c) EXPECT_EQ(plan.size(c) % 16, 0u) << c;
  for (std::size_t size = 16; size <= plan.largest; size *= 2) EXPECT_EQ(plan.size(plan.index(size)), size);
}

TEST_P(SizeClasses, RoundingWastesAtMostOneStep) {
  for (std::size_t size = 16 * GetParam(); size <= plan.largest; ++size) {
    ASSERT_LE(plan.size(plan.index(size)) - size, size / GetParam()) << size;
  }
}

TEST_P(SizeClasses, EvenClassesAreNumberedByTheirSize) {
  for (std::size_t size = 1; size <= plan.even_up_to(); ++size) {
    ASSERT_EQ(plan.index(size), divide_up(size, 16)) << size;
    ASSERT_EQ(plan.size(plan.index(size)), align_up(size, 16)) << size;
  }
  plan.largest = 16 * GetParam();
  EXPECT_EQ(plan.even_up_to(), plan.largest);
}

INSTANTIATE_TEST_SUITE_P(StepsPerDoubling, SizeClasses, ::testing::Values(1, 2, 4, 8, 16));

TEST(ClassTable, SpansHoldTheirBlocksAndWasteLittle) {
  using table = class_table<default_recipe>;
  constexpr const span_plan& plan = default_recipe.spans;
  for (unsigned c = 1; c < table::cut_end; ++c) {
    const auto& info = table::of(c);
    const auto check = [&](std::size_t pages, const span_length& asked) {
      const std::size_t bytes = pages * heap_page;
      EXPECT_GE(bytes / info.size, asked.min_blocks) << info.size;
      EXPECT_LE(bytes % info.size, bytes / asked.max_waste_divisor) << info.size;
    };
    check(info.last_pages, plan.last);
    check(info.first_pages, info.size <= plan.small ? plan.first_of_small : plan.first);
    for (std::uint64_t in_use = 0; in_use < 4 * MiB; in_use += 4 * KiB) {
      const std::size_t pages = table::span_pages(c, in_use);
      check(pages, plan.first);
      if (pages != info.first_pages) {
        EXPECT_LE(pages * heap_page, in_use / plan.growth_divisor) << info.size;
      }
    }
    EXPECT_EQ(table::span_pages(c, 0), info.first_pages);
    EXPECT_EQ(table::span_pages(c, 100 * MiB), info.last_pages);
    EXPECT_LE(info.batch, info.max_kept);
  }
}

TEST(ClassTable, EverySizeFitsItsClassAndNoneSmaller) {
  using table = class_table<default_recipe>;
  for (std::size_t size = 0; size <= table::largest; ++size) {
    const unsigned c = table::index(size);
    ASSERT_GT(c, 0u) << size;
    ASSERT_FALSE(table::is_page_aligned(c)) << size;
    ASSERT_GE(table::of(c).size, size);
    // The classes of two pages and more have a line to spare, which no size asks for.
    if (c > 1) {
      ASSERT_LT(table::of(c - 1).size, size + cache_line) << size;
    }
  }
  EXPECT_EQ(table::index(table::largest + 1), 0u);
}

TEST(ClassTable, PageRunBlocksHaveRoomToBeginAtAnyOf16Lines) {
  using table = class_table<default_recipe>;
  for (unsigned c = table::cut_end; c < table::count; ++c) {
    const auto& info = table::of(c);
    const std::size_t offset = table::is_page_aligned(c) ? 0 : table::largest_offset;
    EXPECT_EQ(info.size + offset, info.first_pages * heap_page);
    EXPECT_EQ(info.first_kept, 0u) << "a small program pays for no more than it uses";
  }
}

TEST(ClassTable, AlignedClassesAreMultiplesOfTheAlignment) {
  using table = class_table<default_recipe>;
  for (std::size_t alignment = 1; alignment <= heap_page; alignment *= 2) {
    for (std::size_t size = 0; size <= table::largest_cut; size += 7) {
      const unsigned c = table::index_aligned(size, alignment);
      ASSERT_GT(c, 0u);
      ASSERT_GE(table::of(c).size, size);
      ASSERT_EQ(table::of(c).size % alignment, 0u);
      ASSERT_LE(table::of(c).size, align_up(std::max<std::size_t>(size, 1), alignment) * 5 / 4 + heap_page);
    }
  }
  EXPECT_EQ(table::index_aligned(16, 2 * heap_page), 0u);
  EXPECT_EQ(table::index_aligned(table::largest_cut + 1, 2 * cache_line), 0u);
  EXPECT_NE(table::index_aligned(table::largest_cut + 1, cache_line), 0u) << "whole blocks begin at a line";
  EXPECT_EQ(table::index_aligned(table::largest + 1, 16), 0u);
  EXPECT_EQ(table::index_aligned(SIZE_MAX, 32), 0u);
}

TEST(Text, FormatsAndCutsOff) {
  text<64> t;
  t.add("n=").add(std::uint64_t{1234567890123}).add(" p=").add_hex(0xdeadbeef).add(" ").add_bytes(1536);
  EXPECT_STREQ(t.c_str(), "n=1234567890123 p=0xdeadbeef 1.5 KiB");
  text<4> small;
  small.add("longer than four");
  EXPECT_STREQ(small.c_str(), "long");
  text<16> zero;
  EXPECT_STREQ(zero.add(std::uint64_t{0}).c_str(), "0");
}

TEST(Text, RoundsBytesToTheNearestTenth) {
  const auto shown = [](std::uint64_t n) { return std::string(text<32>{}.add_bytes(n).c_str()); };
  EXPECT_EQ(shown(0), "0 B");
  EXPECT_EQ(shown(1023), "1023 B");
  EXPECT_EQ(shown(1024), "1.0 KiB");
  EXPECT_EQ(shown(1024 + 51), "1.0 KiB");
  EXPECT_EQ(shown(1024 + 52), "1.1 KiB");
  EXPECT_EQ(shown(69'296'128), "66.1 MiB");
  EXPECT_EQ(shown(UINT64_MAX), "16777216.0 TiB");
}

}  // namespace
}  // namespace heapwright
