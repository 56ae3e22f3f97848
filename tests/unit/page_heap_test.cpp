// The page heap accounts for every byte, merges what is free, prefers memory that is resident, and
// gives back what stays unused.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <heapwright/heap/page_heap.hpp>

#include "fake_os.hpp"

namespace heapwright {
namespace {

using testing::fake_os;

template <class OS>
class PageHeap : public ::testing::Test {
 protected:
  // Page heaps are never destroyed; the list keeps leak checkers from calling that a leak.
  static page_heap<default_recipe, OS>& fresh_heap() {
    static auto& all = *new std::vector<page_heap<default_recipe, OS>*>;
    return *all.emplace_back(new page_heap<default_recipe, OS>);
  }

  page_heap<default_recipe, OS>& heap = fresh_heap();

  span* get(std::size_t pages, std::size_t alignment = heap_page) {
    span* s = heap.allocate(pages, alignment, span_state::large);
    EXPECT_NE(s, nullptr);
    EXPECT_GE(s->pages, pages);
    EXPECT_TRUE(is_aligned(s->start, alignment));
    return s;
  }

  void expect_balanced() {
    const heap_figures& f = heap.figures();
    EXPECT_EQ(f.mapped, f.spans + f.large + f.free_resident + f.free_decommitted);
  }

  void pass_window() {
    OS::now += default_recipe.pages.purge_window_ms + 1;
    heap.tick();
  }
};

using Systems = ::testing::Types<fake_os<4 * KiB>, fake_os<16 * KiB>, fake_os<64 * KiB>>;
TYPED_TEST_SUITE(PageHeap, Systems);

TYPED_TEST(PageHeap, FreshMemoryReadsAsZeroAndIsSaidTo) {
  span* s = this->get(20);
  EXPECT_TRUE(s->zeroed);
  for (std::size_t i = 0; i < s->bytes(); ++i) ASSERT_EQ(s->start[i], std::byte{0});
  std::memset(s->start, 0xAA, s->bytes());
  this->heap.release(s);
  s = this->get(20);
  EXPECT_FALSE(s->zeroed);
  this->expect_balanced();
}

TYPED_TEST(PageHeap, NeighboursMergeInAnyOrder) {
  std::vector<span*> all;
  for (int i = 0; i < 8; ++i) all.push_back(this->get(16));
  std::byte* const lowest =
      (*std::min_element(all.begin(), all.end(), [](span* a, span* b) { return a->start < b->start; }))->start;
  const std::uint64_t mapped = this->heap.figures().mapped;
  for (int i : {3, 1, 5, 7, 0, 2, 6, 4}) this->heap.release(all[static_cast<std::size_t>(i)]);
  // Only if all eight are one run again is there room for 128 pages in the same place.
  span* const whole = this->get(8 * 16);
  EXPECT_EQ(whole->start, lowest);
  EXPECT_EQ(this->heap.figures().mapped, mapped);
  this->expect_balanced();
}

TYPED_TEST(PageHeap, AlignsToWhateverPowerOfTwo) {
  for (std::size_t alignment = heap_page; alignment <= 256 * MiB; alignment *= 2) {
    span* const s = this->get(3, alignment);
    this->heap.release(s);
  }
  this->expect_balanced();
}

TYPED_TEST(PageHeap, GivesBackAfterTwoQuietWindowsAndNotBefore) {
  span* const keep = this->get(1);
  span* const s = this->get(1000);
  this->pass_window();
  this->heap.release(s);
  const auto& f = this->heap.figures();
  EXPECT_GT(f.free_resident, 999 * heap_page);
  this->heap.tick();
  EXPECT_GT(f.free_resident, 999 * heap_page) << "given back although no time has passed";
  this->pass_window();
  this->pass_window();
  EXPECT_LT(f.free_resident, TypeParam::page_size() * 2);
  this->heap.release(keep);
  this->expect_balanced();
}

TYPED_TEST(PageHeap, KeepsWhatIsUsedInEveryWindow) {
  const auto& f = this->heap.figures();
  for (int i = 0; i < 10; ++i) {
    span* const s = this->get(200);
    this->heap.release(s);
    const std::uint64_t returned = f.decommitted_total;
    span* const again = this->get(200);
    this->pass_window();
    this->heap.release(again);
    EXPECT_EQ(f.decommitted_total, returned);
  }
}

TYPED_TEST(PageHeap, WhatAnArrayThatGrowsLeavesBehindIsNotKeptBesideIt) {
  const auto& f = this->heap.figures();
  span* array = this->get(500);
  std::memset(array->start, 1, array->bytes());
  for (std::size_t pages = 1000; pages <= 8000; pages *= 2) {
    span* const longer = this->get(pages);
    std::memset(longer->start, 1, longer->bytes() / 2);
    this->heap.release(array);
    EXPECT_LE(f.large + f.free_resident, longer->bytes() / 32 * 33 + 512 * KiB) << pages;
    std::memset(longer->start, 1, longer->bytes());
    array = longer;
  }
  this->heap.release(array);
  this->expect_balanced();
}

TYPED_TEST(PageHeap, WhatWasTouchedAtThePeakIsKept) {
  const auto& f = this->heap.figures();
  span* const first = this->get(1000);
  span* const second = this->get(1000);
  std::memset(first->start, 1, first->bytes());
  std::memset(second->start, 1, second->bytes());
  this->heap.release(first);
  EXPECT_GE(f.free_resident, 1000 * heap_page);
  span* const one = this->get(1);
  EXPECT_GE(f.free_resident, 999 * heap_page) << "the peak is forgotten with the next request";
  this->heap.release(one);
  this->heap.release(second);
  EXPECT_GE(f.free_resident, 2000 * heap_page);
  EXPECT_EQ(f.decommitted_total, 0u);
  this->expect_balanced();
}

TYPED_TEST(PageHeap, GivesBackWhenThreadsHaveEndedUnlessItIsWantedAgain) {
  const auto& f = this->heap.figures();
  (void)this->get(1);
  this->heap.release(this->get(1000));
  this->heap.after_threads();
  EXPECT_LT(f.free_resident, 1 * MiB);
  for (int i = 0; i < 5; ++i) {
    this->heap.release(this->get(1000));
    this->heap.after_threads();
  }
  EXPECT_GT(f.free_resident, 900 * heap_page);
  this->expect_balanced();
}

TYPED_TEST(PageHeap, TrimGivesEverythingBack) {
  std::vector<span*> all;
  for (int i = 0; i < 50; ++i) all.push_back(this->get(64));
  for (std::size_t i = 0; i < all.size(); i += 2) this->heap.release(all[i]);
  EXPECT_GE(this->heap.trim(), 25 * 64 * heap_page);
  EXPECT_EQ(this->heap.figures().free_resident, 0u);
  this->expect_balanced();
}

TYPED_TEST(PageHeap, ResizesInPlaceWhereThereIsRoom) {
  span* const s = this->get(10);
  std::memset(s->start, 0x5A, s->bytes());
  EXPECT_TRUE(this->heap.try_resize(s, 5));
  EXPECT_EQ(s->pages, 5u);
  EXPECT_TRUE(this->heap.try_resize(s, 10));
  for (std::size_t i = 0; i < 5 * heap_page; ++i) ASSERT_EQ(s->start[i], std::byte{0x5A});
  this->expect_balanced();
}

TYPED_TEST(PageHeap, MovesPagesWithTheirContents) {
  const std::size_t page = TypeParam::page_size();
  span* const s = this->get(20 * page / heap_page, page);
  std::byte* const before = s->start;
  for (std::size_t i = 0; i < s->bytes(); i += 512) s->start[i] = static_cast<std::byte>(i / 512);
  const std::size_t bytes = s->bytes();
  ASSERT_TRUE(this->heap.try_remap(s, 4000 * page / heap_page));
  for (std::size_t i = 0; i < bytes; i += 512) ASSERT_EQ(s->start[i], static_cast<std::byte>(i / 512));
  for (std::size_t i = bytes; i < s->bytes(); i += 512) ASSERT_EQ(s->start[i], std::byte{0});
  EXPECT_TRUE(s->start == before || this->heap.map().tag(before) == 0) << "the old place is still said to be ours";
  this->heap.release(s);
  this->expect_balanced();
}

TYPED_TEST(PageHeap, RandomUseStaysBalancedAndNeverOverlaps) {
  std::mt19937 random(1);
  std::vector<span*> held;
  for (int step = 0; step < 5000; ++step) {
    if (held.size() < 60 || random() % 2 == 0) {
      const std::size_t pages = random() % 10 == 0 ? random() % 2000 + 1 : random() % 40 + 1;
      span* const s = this->get(pages, heap_page << (random() % 4));
      std::memcpy(s->start, &s, sizeof s);
      std::memcpy(s->end() - sizeof s, &s, sizeof s);
      held.push_back(s);
    } else {
      std::swap(held[random() % held.size()], held.back());
      span* const s = held.back();
      span* stored[2];
      std::memcpy(&stored[0], s->start, sizeof s);
      std::memcpy(&stored[1], s->end() - sizeof s, sizeof s);
      ASSERT_EQ(stored[0], s);
      ASSERT_EQ(stored[1], s);
      held.pop_back();
      this->heap.release(s);
    }
    if (step % 100 == 0) this->pass_window();
  }
  this->expect_balanced();
  for (span* s : held) this->heap.release(s);
  this->heap.trim();
  EXPECT_EQ(this->heap.figures().large, 0u);
  this->expect_balanced();
}

}  // namespace
}  // namespace heapwright
