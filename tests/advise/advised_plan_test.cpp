// Plans as advised: which operations have a part, and that blocks which grow have their last size
// from the beginning, in a slot that nobody else uses meanwhile.
#include "advised_plan.hpp"

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "planned_sites.hpp"
#include "stored_trace.hpp"

namespace heapwright::tool {
namespace {

using replay::operation;
using replay::operation_kind;
using trace::block_id;
using trace::thread_number;

/// Carries out a plan in turns: each slot has one block at a time, and a block has room for all
/// that is said of it. Returns the kinds of operations, by how often.
std::map<operation_kind, unsigned> carried_out(const mapped_plan& plan) {
  std::vector<std::uint64_t> slots(plan.footer().slots);
  std::map<operation_kind, unsigned> counts;
  for (const replay::turn& t : plan.turns()) {
    for (const operation& o : plan.operations_of(t)) {
      ++counts[o.kind];
      std::uint64_t& slot = slots.at(o.slot);
      switch (o.kind) {
        case operation_kind::allocate:
        case operation_kind::reallocate:
          EXPECT_EQ(slot, 0U) << "the slot is in use";
          slot = o.size;
          break;
        case operation_kind::deallocate:
        case operation_kind::take:
          EXPECT_EQ(slot, o.size) << "another block is in the slot";
          slot = 0;
          break;
        case operation_kind::grow:
        case operation_kind::nothing: EXPECT_LE(o.size, slot) << "it has no room for that"; break;
      }
    }
  }
  return counts;
}

TEST(AdvisedPlan, BlocksOfTheSiteAndNoOthersComeFromThePart) {
  stored_trace trace;
  const thread_number self{0, 0};
  for (std::uint32_t i = 0; i < 20; ++i) {
    block_id b = trace.writer.allocate(self, {.size = 40, .stack = 1 + i % 2}, 0);
    if (i % 4 == 0) b = trace.writer.reallocate(self, b, {.size = 50, .stack = 2}, 0);
    trace.writer.deallocate(self, b, 0);
  }
  const planned_sites planned(trace.end());
  const scratch_file file;
  const advice what{.kind = advice_kind::pool, .site = 1, .bytes = 40};
  write_advised_plan(planned.plan(), {&what, 1}, file);
  const mapped_plan advised(file.fd());
  ASSERT_EQ(advised.footer().parts, 1U);
  replay::kit_part part{};
  std::memcpy(&part, advised.bytes().data() + advised.footer().parts_at, sizeof part);
  EXPECT_EQ(part.kind, replay::part_kind::pool);
  EXPECT_EQ(part.bytes, 40U);
  unsigned from_part = 0;
  for (const operation& o : advised.operations()) {
    EXPECT_EQ(o.part, o.site == 1 ? 1 : 0);
    from_part += o.part;
  }
  EXPECT_EQ(from_part, 20U) << "10 blocks: each begins and ends";
  carried_out(advised);
}

TEST(AdvisedPlan, BlocksThatGrowHaveTheirLastSizeAtOnce) {
  stored_trace trace;
  const thread_number self{0, 0};
  for (int row = 0; row < 5; ++row) {
    block_id b = trace.writer.allocate(self, {.size = 8, .stack = 1}, 0);
    for (std::uint64_t size = 16; size <= 64; size += 8)
      b = trace.writer.reallocate(self, b, {.size = size, .stack = 1}, 0);
    trace.writer.deallocate(self, b, 0);
  }
  const planned_sites planned(trace.end());
  const scratch_file file;
  const advice what{.kind = advice_kind::reserve, .site = 1};
  write_advised_plan(planned.plan(), {&what, 1}, file);
  const mapped_plan advised(file.fd());
  auto counts = carried_out(advised);
  EXPECT_EQ(counts[operation_kind::allocate], 5U);
  EXPECT_EQ(counts[operation_kind::grow], 35U);
  EXPECT_EQ(counts[operation_kind::reallocate], 0U);
  EXPECT_EQ(counts[operation_kind::deallocate], 5U);
  EXPECT_EQ(advised.footer().slots, planned.plan().footer().slots + 1) << "rows one after the other share a slot";
  for (const operation& o : advised.operations()) {
    if (o.kind == operation_kind::allocate) {
      EXPECT_EQ(o.size, 64U);
    }
  }
}

/// Of threads that allocate, grow, shrink and free blocks, their own and those of others.
TEST(AdvisedPlan, StaysSoundInAnyHistory) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    stored_trace trace;
    std::vector<block_id> live;
    for (unsigned i = 0; i < 4000; ++i) {
      const thread_number by{0, static_cast<std::uint32_t>(random() % (1 + seed % 3))};
      const trace::request asked{.size = 1 + random() % 100, .stack = static_cast<std::uint32_t>(1 + random() % 3)};
      if (live.empty() || random() % 3 == 0) {
        live.push_back(trace.writer.allocate(by, asked, i * 700));
        continue;
      }
      std::swap(live[random() % live.size()], live.back());
      const block_id b = live.back();
      live.pop_back();
      if (random() % 2 == 0)
        live.push_back(trace.writer.reallocate(by, b, asked, i * 700));
      else
        trace.writer.deallocate(by, b, i * 700);
    }
    const planned_sites planned(trace.end());
    const scratch_file file;
    const std::vector<advice> followed{{.kind = advice_kind::reserve, .site = 1},
                                       {.kind = advice_kind::reserve, .site = 2}};
    write_advised_plan(planned.plan(), followed, file);
    const mapped_plan advised(file.fd());
    EXPECT_GT(carried_out(advised)[operation_kind::grow], seed % 3 == 0 ? 20U : 0U);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace heapwright::tool
