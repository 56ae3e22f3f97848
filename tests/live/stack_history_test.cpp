// The whole time, in bounded memory, the coarser the longer.
#include "stack_history.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

std::shared_ptr<const baseline> moment_at(std::uint64_t at_ns, std::size_t stacks) {
  auto made = std::make_shared<baseline>();
  made->at_ns = at_ns;
  for (std::size_t i = 0; i < stacks; ++i)
    made->stacks.emplace_back(static_cast<segment::reference>(i + 1), stack_counts{});
  return made;
}

/// Of a process that calls malloc all the time and is looked at each second.
stack_history watched_for(std::uint64_t seconds, std::size_t stacks, std::uint64_t took_ns = 0) {
  stack_history h;
  for (std::uint64_t s = 1; s <= seconds; ++s)
    if (h.is_due(s * second, s)) h.add(moment_at(s * second, stacks), s, took_ns);
  return h;
}

std::size_t figures_of(const stack_history& h) {
  std::size_t sum = 0;
  for (const auto& m : h.moments()) sum += m->stacks.size();
  return sum;
}

TEST(stack_history, has_each_second_of_a_short_time) { EXPECT_EQ(watched_for(100, 10).moments().size(), 100U); }

TEST(stack_history, has_moments_of_all_of_a_long_time) {
  constexpr std::uint64_t day = 86'400;
  const stack_history h = watched_for(day, 10);
  ASSERT_LE(h.moments().size(), stack_history::most_moments);
  ASSERT_GT(h.moments().size(), stack_history::most_moments / 4);
  EXPECT_EQ(h.moments().front()->at_ns, second);
  const std::uint64_t widest = 2 * day * second / h.moments().size() * 2;
  for (std::size_t i = 1; i < h.moments().size(); ++i)
    EXPECT_LT(h.moments()[i]->at_ns - h.moments()[i - 1]->at_ns, widest);
  EXPECT_GT(h.moments().back()->at_ns, day * second - widest);
}

TEST(stack_history, has_fewer_moments_of_many_stacks) {
  const stack_history h = watched_for(1000, 5'000);
  EXPECT_LE(figures_of(h), stack_history::most_figures);
  EXPECT_GT(figures_of(h), stack_history::most_figures / 4);
  EXPECT_EQ(watched_for(1000, stack_history::most_figures).moments().size(), stack_history::least_moments);
}

TEST(stack_history, takes_a_hundredth_of_the_time) {
  EXPECT_LE(watched_for(1000, 10, second / 2).moments().size(), 21U);
}

TEST(stack_history, has_nothing_new_where_nothing_was_called) {
  stack_history h;
  h.add(moment_at(second, 1), 7, 0);
  EXPECT_FALSE(h.is_due(100 * second, 7));
  EXPECT_TRUE(h.is_due(100 * second, 8));
}

TEST(stack_history, finds_the_nearest_moment) {
  EXPECT_EQ(stack_history().nearest(5), nullptr);
  const stack_history h = watched_for(10, 1);
  EXPECT_EQ(h.nearest(0)->at_ns, second);
  EXPECT_EQ(h.nearest(4 * second + second / 3)->at_ns, 4 * second);
  EXPECT_EQ(h.nearest(1000 * second)->at_ns, 10 * second);
  EXPECT_FALSE(h.covers(second - 1));
  EXPECT_TRUE(h.covers(second));
}

TEST(baseline, has_zeros_for_a_stack_that_was_not_there) {
  segment::stack_figures s;
  s.id = 7;
  s.allocated_bytes = 100;
  const baseline b = baseline_of({s}, 1);
  EXPECT_EQ(b.of(7).allocated_bytes, 100U);
  EXPECT_EQ(b.of(6).allocated_bytes, 0U);
  EXPECT_EQ(b.of(8).allocated_bytes, 0U);
}

}  // namespace
}  // namespace heapwright::tool
