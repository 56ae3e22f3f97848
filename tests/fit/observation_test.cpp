// What is counted of a program, from traces whose figures are known.
#include "observation.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan_builder.hpp"
#include "scratch_file.hpp"
#include "stored_trace.hpp"

namespace heapwright::tool {
namespace {

/// Blocks of several threads, in one round.
class history {
 public:
  trace::block_id allocate(std::uint32_t thread, std::uint64_t size, std::uint64_t at_ms) {
    return trace_.writer.allocate({0, thread}, {.size = size}, at_ms * ms);
  }
  void free(std::uint32_t thread, const trace::block_id& block, std::uint64_t at_ms) {
    trace_.writer.deallocate({0, thread}, block, at_ms * ms);
  }

  [[nodiscard]] observation observed() {
    const auto nothing = [](double) {};
    plan_builder builder(trace_.end(), std::nullopt, nothing);
    const scratch_file plan;
    builder.build(plan.fd(), nothing, false);
    return observe(plan.fd());
  }

 private:
  static constexpr std::uint64_t ms = 1'000'000;

  stored_trace trace_;
};

std::vector<std::uint64_t> row(const size_use& u) { return {u.size, u.allocations, u.live_at_peak}; }

TEST(observation, sizes_and_what_of_them_lives_at_the_peak) {
  history h;
  const auto a = h.allocate(0, 100, 1);
  (void)h.allocate(0, 300, 2);
  const auto b = h.allocate(0, 100, 3);
  h.free(0, a, 4);
  h.free(0, b, 5);
  (void)h.allocate(0, 40, 6);
  const observation o = h.observed();
  ASSERT_EQ(o.sizes.size(), 3U);
  EXPECT_EQ(row(o.sizes[0]), (std::vector<std::uint64_t>{40, 1, 0}));
  EXPECT_EQ(row(o.sizes[1]), (std::vector<std::uint64_t>{100, 2, 2}));
  EXPECT_EQ(row(o.sizes[2]), (std::vector<std::uint64_t>{300, 1, 1}));
  EXPECT_EQ(o.live_peak, 500U);
  EXPECT_EQ(o.live_at_end, 340U);
  EXPECT_EQ(o.allocations, 4U);
  EXPECT_EQ(o.frees, 2U);
  EXPECT_EQ(o.allocated_bytes, 540U);
}

TEST(observation, who_frees_and_how_soon) {
  history h;
  const auto a = h.allocate(0, 64, 1);
  const auto b = h.allocate(0, 64, 1);
  h.free(0, a, 1);
  h.free(1, b, 50);
  const observation o = h.observed();
  EXPECT_EQ(o.threads, 2U);
  EXPECT_EQ(o.freed_by_others, 1U);
  EXPECT_EQ(o.short_lived, 1U);
}

TEST(observation, what_lives_falls_and_grows_again) {
  history h;
  constexpr std::uint64_t size = 10 << 20;
  for (unsigned i = 0; i < 3; ++i) {
    const auto block = h.allocate(0, size, 10 * i + 1);
    h.free(0, block, 10 * i + 5);
  }
  const observation o = h.observed();
  // The first time it grows, it does not grow again.
  EXPECT_NEAR(static_cast<double>(o.regrown), 2.0 * size, 1 << 16);
  EXPECT_EQ(o.large_allocations, 3U);
}

TEST(observation, caches_move_batches_where_many_blocks_come_back_at_once) {
  history h;
  std::vector<trace::block_id> blocks;
  for (unsigned round = 0; round < 10; ++round) {
    blocks.clear();
    for (unsigned i = 0; i < 1000; ++i) blocks.push_back(h.allocate(0, 64, round + 1));
    for (const auto& b : blocks) h.free(0, b, round + 1);
  }
  const observation o = h.observed();
  // 64,000 bytes go and come back: they fit a cache of 64 KiB, and not one of 4 KiB.
  ASSERT_EQ(o.caches.size(), observation::cache_limits.size());
  EXPECT_EQ(o.caches[2].limit, 64U << 10);
  EXPECT_LT(o.caches[2].transfers, 20U);
  EXPECT_GT(o.caches[0].transfers, 200U);
}

TEST(observation, moments_of_a_picture_are_few_and_the_last_is_there) {
  history h;
  for (unsigned i = 0; i < 5000; ++i) (void)h.allocate(0, 16, i + 1);
  const observation o = h.observed();
  EXPECT_LE(o.history.size(), 1300U);
  ASSERT_FALSE(o.history.empty());
  EXPECT_EQ(o.history.back().bytes, 5000U * 16);
}

}  // namespace
}  // namespace heapwright::tool
