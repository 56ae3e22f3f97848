// What is counted of the blocks of planted histories.
#include "site_habits.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "planned_sites.hpp"
#include "stored_trace.hpp"

namespace heapwright::tool {
namespace {

using trace::block_id;
using trace::thread_number;

constexpr thread_number self{0, 0}, other{0, 1};

program_habits habits_in(stored_trace& trace) {
  const planned_sites planned(trace.end());
  return habits_of(planned.plan(), planned_sites::sites);
}

TEST(SiteHabits, CountsOfSizesAndOfLifetimes) {
  stored_trace trace;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t size = i < 99 ? 48 : 500;
    trace.writer.deallocate(self, trace.writer.allocate(self, {.size = size, .stack = 1}, 0), 0);
  }
  const block_id old = trace.writer.allocate(self, {.size = 8, .stack = 2}, 0);
  for (int i = 0; i < 40; ++i) (void)trace.writer.allocate(self, {.size = 1, .stack = 3}, 0);
  trace.writer.deallocate(self, old, 0);
  const program_habits all = habits_in(trace);
  const site_habits& s = all.sites[0];
  EXPECT_EQ(all.allocations, 141U);
  EXPECT_EQ(all.live_peak, 500U);
  EXPECT_EQ(s.allocations, 100U);
  EXPECT_EQ(s.usual_size, 48U);
  EXPECT_EQ(s.usual_allocations, 99U);
  EXPECT_EQ(s.small_allocations, 99U);
  EXPECT_EQ(s.largest, 500U);
  EXPECT_EQ(s.short_lived, 100U);
  EXPECT_EQ(s.live_at_program_peak, 500U);
  EXPECT_EQ(all.sites[1].short_lived, 0U) << "40 allocations came between";
  EXPECT_EQ(all.sites[2].live_at_end, 40U);
}

TEST(SiteHabits, KnowsWhetherTheNewestIsFreedFirst) {
  stored_trace trace;
  std::vector<block_id> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(trace.writer.allocate(self, {.size = 100, .stack = 1}, 0));
  for (int i = 10; i-- > 0;) trace.writer.deallocate(self, blocks[static_cast<std::size_t>(i)], 0);
  blocks.clear();
  for (int i = 0; i < 10; ++i) blocks.push_back(trace.writer.allocate(self, {.size = 100, .stack = 2}, 0));
  for (const block_id& b : blocks) trace.writer.deallocate(self, b, 0);
  const program_habits all = habits_in(trace);
  EXPECT_EQ(all.sites[0].freed_newest, 10U);
  EXPECT_EQ(all.sites[0].thread_live_blocks, 10U);
  EXPECT_EQ(all.sites[1].freed_newest, 1U) << "the last one";
}

TEST(SiteHabits, AnArenaHoldsAllUntilNoneLives) {
  stored_trace trace;
  for (int round = 0; round < 3; ++round) {
    std::vector<block_id> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(trace.writer.allocate(self, {.size = 100, .stack = 1}, 0));
    for (const block_id& b : blocks) trace.writer.deallocate(self, b, 0);
  }
  block_id last = trace.writer.allocate(self, {.size = 100, .stack = 2}, 0);
  for (int i = 0; i < 20; ++i) {
    const block_id next = trace.writer.allocate(self, {.size = 100, .stack = 2}, 0);
    trace.writer.deallocate(self, last, 0);
    last = next;
  }
  const program_habits all = habits_in(trace);
  EXPECT_EQ(all.sites[0].endings, 3U);
  EXPECT_EQ(all.sites[0].gathered_peak, 1000U);
  EXPECT_EQ(all.sites[0].live_peak, 1000U);
  EXPECT_EQ(all.sites[1].gathered_peak, 2100U) << "one always lives";
  EXPECT_EQ(all.sites[1].live_peak, 200U);
}

TEST(SiteHabits, BlocksThatGrowAreRows) {
  stored_trace trace;
  // By realloc: 8, 16, 24, 32 bytes.
  block_id grown = trace.writer.allocate(self, {.size = 8, .stack = 1}, 0);
  for (std::uint64_t size = 16; size <= 32; size += 8)
    grown = trace.writer.reallocate(self, grown, {.size = size, .stack = 1}, 0);
  grown = trace.writer.reallocate(self, grown, {.size = 4, .stack = 1}, 0);  // shrinks
  trace.writer.deallocate(self, grown, 0);
  // As a container does: the next one first.
  block_id held = trace.writer.allocate(self, {.size = 100, .stack = 2}, 0);
  for (std::uint64_t size = 200; size <= 800; size *= 2) {
    const block_id next = trace.writer.allocate(self, {.size = size, .stack = 2}, 0);
    trace.writer.deallocate(self, held, 0);
    held = next;
  }
  trace.writer.deallocate(self, held, 0);
  const program_habits all = habits_in(trace);
  EXPECT_EQ(all.sites[0].takeovers, 3U);
  EXPECT_EQ(all.sites[0].rows, 1U);
  EXPECT_EQ(all.sites[0].grown_bytes, 32U);
  EXPECT_EQ(all.sites[0].resized, 4U);
  EXPECT_EQ(all.sites[1].takeovers, 3U);
  EXPECT_EQ(all.sites[1].rows, 1U);
  EXPECT_EQ(all.sites[1].grown_bytes, 800U);
}

TEST(SiteHabits, KnowsWhoFrees) {
  stored_trace trace;
  for (int i = 0; i < 5; ++i)
    trace.writer.deallocate(other, trace.writer.allocate(self, {.size = 1, .stack = 1}, 0), 0);
  (void)trace.writer.allocate(other, {.size = 1, .stack = 1}, 0);
  const program_habits all = habits_in(trace);
  EXPECT_EQ(all.sites[0].freed_by_others, 5U);
  EXPECT_EQ(all.sites[0].freed_newest, 0U);
  EXPECT_EQ(all.sites[0].threads, 2U);
}

}  // namespace
}  // namespace heapwright::tool
