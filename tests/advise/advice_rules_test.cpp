// Which rule a site fits, at the borders of each; and that docs/advise.md shows the same rules.
#include "advice_rules.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

/// A site that fits none: blocks of many sizes that come and go at random.
site_habits of_any_kind() {
  return {.allocations = 1000,
          .bytes = 1'000'000,
          .frees = 1000,
          .usual_size = 1000,
          .usual_allocations = 10,
          .largest = 5000,
          .live_peak = 200'000,
          .thread_live_bytes = 200'000,
          .thread_live_blocks = 200,
          .gathered_peak = 1'000'000,
          .threads = 1};
}

std::string advice_for_one(const site_habits& s) {
  const std::vector<advice> all = advice_for({.sites = {s}, .allocations = s.allocations, .live_peak = s.live_peak});
  return all.empty() ? "" : all.front().name();
}

TEST(AdviceRules, NoneForWhatFitsNone) { EXPECT_EQ(advice_for_one(of_any_kind()), ""); }

TEST(AdviceRules, SmallBuffer) {
  site_habits s = of_any_kind();
  s.small_allocations = s.short_lived = 900;
  s.thread_live_blocks = 16;
  EXPECT_EQ(advice_for_one(s), "small buffer");
  for (const auto less : {&site_habits::small_allocations, &site_habits::short_lived}) {
    site_habits not_enough = s;
    not_enough.*less = 899;
    EXPECT_EQ(advice_for_one(not_enough), "");
  }
  for (const auto more : {&site_habits::thread_live_blocks, &site_habits::freed_by_others}) {
    site_habits too_much = s;
    ++(too_much.*more);
    EXPECT_EQ(advice_for_one(too_much), "");
  }
}

TEST(AdviceRules, Reserve) {
  site_habits s = of_any_kind();
  s.takeovers = 500;
  s.rows = 10;
  s.grown_bytes = 4000;
  EXPECT_EQ(advice_for_one(s), "reserve");
  EXPECT_EQ(advice_for({.sites = {s}, .allocations = 1000, .live_peak = 1})[0].bytes, 400U);
  s.takeovers = 499;
  EXPECT_EQ(advice_for_one(s), "");
}

TEST(AdviceRules, StackArena) {
  site_habits s = of_any_kind();
  s.freed_newest = 990;
  s.thread_live_bytes = 64 << 10;
  EXPECT_EQ(advice_for_one(s), "stack arena");
  s.thread_live_bytes += 1;
  EXPECT_EQ(advice_for_one(s), "");
  s.thread_live_bytes -= 1;
  s.freed_newest = 989;
  EXPECT_EQ(advice_for_one(s), "");
}

// Where the recording ended, what lives then dies with the program; a torn trace does not tell.
TEST(AdviceRules, NoArenaForWhatLivesAtTheEndOfATornTrace) {
  site_habits s = of_any_kind();
  s.gathered_peak = s.live_peak;
  s.frees = 0;
  const auto kinds = [&](bool is_torn) {
    return advice_for({.sites = {s}, .allocations = 1000, .live_peak = s.live_peak, .is_torn = is_torn}).size();
  };
  EXPECT_EQ(kinds(false), 1U);
  EXPECT_EQ(kinds(true), 0U);
  s.endings = 1;
  EXPECT_EQ(kinds(true), 1U);
}

TEST(AdviceRules, Arena) {
  site_habits s = of_any_kind();
  s.gathered_peak = 250'000;
  EXPECT_EQ(advice_for_one(s), "arena");
  s.gathered_peak = 250'001;
  EXPECT_EQ(advice_for_one(s), "");
  s.gathered_peak = 250'000;
  s.freed_by_others = 1;
  EXPECT_EQ(advice_for_one(s), "");
}

TEST(AdviceRules, Pools) {
  site_habits s = of_any_kind();
  s.usual_allocations = 990;
  EXPECT_EQ(advice_for_one(s), "pool");
  s.freed_by_others = 1;
  EXPECT_EQ(advice_for_one(s), "shared pool");
  s.usual_size = 4097;
  EXPECT_EQ(advice_for_one(s), "");
  s.usual_size = 48;
  s.usual_allocations = 989;
  EXPECT_EQ(advice_for_one(s), "");
}

TEST(AdviceRules, HandOver) {
  site_habits s = of_any_kind();
  s.freed_by_others = 900;
  EXPECT_EQ(advice_for_one(s), "hand-over");
  s.freed_by_others = 899;
  EXPECT_EQ(advice_for_one(s), "");
}

TEST(AdviceRules, SitesThatMatterLittleGetNone) {
  site_habits s = of_any_kind();
  s.usual_allocations = s.allocations;
  program_habits all{.sites = {s}, .allocations = 100'000, .live_peak = 1'000'000};
  EXPECT_EQ(advice_for(all).size(), 1U);
  all.allocations = 100'001;
  EXPECT_EQ(advice_for(all).size(), 0U);
  all.sites[0].live_at_program_peak = 10'000;
  EXPECT_EQ(advice_for(all).size(), 1U) << "of the memory it is a hundredth";
}

TEST(AdviceRules, ThePageShowsThem) {
  std::ifstream file(ADVISE_PAGE);
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_NE(page.str().find(advice_rules_as_markdown()), std::string::npos) << "docs/advise.md shall have this table:\n"
                                                                            << advice_rules_as_markdown();
}

}  // namespace
}  // namespace heapwright::tool
