// Which candidates go to real runs: ratios of replays in, finalists out.
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tried_recipe.hpp"

namespace heapwright::tool {
namespace {

/// Half of the program's time is malloc's: a malloc of 1.5 of the default's time seems slow.
constexpr double malloc_share = 0.5;
constexpr std::size_t most = 4;

tried_recipe replayed(const std::string& name, double peak_ratio, double malloc_time_ratio = 1) {
  tried_recipe one;
  one.what.name = name;
  one.peak_ratio = peak_ratio;
  one.malloc_time_ratio = malloc_time_ratio;
  return one;
}

std::vector<std::string> names(std::deque<tried_recipe> tried, fit_goal goal) {
  std::vector<std::string> all;
  for (const tried_recipe* const one : choose_finalists(tried, goal, malloc_share, most)) all.push_back(one->what.name);
  return all;
}

using these = std::vector<std::string>;

TEST(finalists, are_the_most_promising_in_their_order) {
  EXPECT_EQ(
      names({replayed("c", 0.9), replayed("e", 0.99), replayed("a", 0.7), replayed("d", 0.95), replayed("b", 0.8)},
            fit_goal::memory),
      (these{"a", "b", "c", "d"}));
}

TEST(finalists, are_at_most_half_such_that_seem_slow) {
  EXPECT_EQ(names({replayed("slow 1", 0.70, 1.5), replayed("slow 2", 0.71, 1.5), replayed("slow 3", 0.72, 1.5),
                   replayed("slow 4", 0.73, 1.5), replayed("quick 1", 0.88), replayed("quick 2", 0.89)},
                  fit_goal::memory),
            (these{"slow 1", "slow 2", "quick 1", "quick 2"}));
}

TEST(finalists, that_seem_slow_take_the_places_that_no_other_wants) {
  EXPECT_EQ(names({replayed("slow 1", 0.70, 1.5), replayed("slow 2", 0.71, 1.5), replayed("slow 3", 0.72, 1.5),
                   replayed("quick", 0.88)},
                  fit_goal::memory),
            (these{"slow 1", "slow 2", "slow 3", "quick"}));
}

TEST(finalists, are_none_where_nothing_promises_a_gain) {
  EXPECT_EQ(names({replayed("equal", 1), replayed("within noise", 0.999), replayed("worse", 1.01)}, fit_goal::memory),
            these{});
}

TEST(finalists, need_no_more_memory_than_a_verdict_allows) {
  EXPECT_EQ(names({replayed("quick but large", 1.03, 0.5), replayed("quick", 1.01, 0.8)}, fit_goal::time),
            these{"quick"});
}

TEST(finalists, are_none_that_failed_and_no_step_that_added_nothing) {
  tried_recipe failed = replayed("failed", 0.5), useless = replayed("useless", 0.6);
  failed.failure = "it crashed";
  useless.adds_nothing = true;
  EXPECT_EQ(names({failed, useless, replayed("good", 0.9)}, fit_goal::memory), these{"good"});
}

TEST(finalists, for_time_may_be_such_that_gain_where_replays_see_nothing) {
  tried_recipe placed = replayed("huge pages", 1);
  placed.what.gains_outside_malloc = true;
  EXPECT_EQ(names({placed}, fit_goal::time), these{"huge pages"});
  EXPECT_EQ(names({placed}, fit_goal::memory), these{});
}

TEST(prediction, of_time_counts_what_malloc_takes_of_it) {
  const tried_recipe one = replayed("one", 0.8, 1.5);
  EXPECT_DOUBLE_EQ(predicted(one, fit_goal::time, 0.1), 1.05);
  EXPECT_DOUBLE_EQ(predicted(one, fit_goal::memory, 0.1), 0.8);
  EXPECT_DOUBLE_EQ(predicted(one, fit_goal::both, 0.1), 0.84);
  EXPECT_TRUE(seems_slow(one, 0.1));
  EXPECT_FALSE(seems_slow(one, 0.03));
}

}  // namespace
}  // namespace heapwright::tool
