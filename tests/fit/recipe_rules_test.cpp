// Rules: numbers in, candidates and sentences out. No program runs.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <heapwright/heap/recipe.hpp>

#include "candidate.hpp"
#include "levers.hpp"
#include "size_choice.hpp"

namespace heapwright::tool {
namespace {

std::vector<std::string> names_of(const std::vector<candidate>& all) {
  std::vector<std::string> names;
  for (const candidate& c : all) names.push_back(c.name);
  return names;
}

bool has(const std::vector<candidate>& all, const std::string& name) {
  return std::ranges::find(all, name, &candidate::name) != all.end();
}

/// A program of which nothing can be said.
fit_evidence plain() {
  fit_evidence e;
  e.does.allocations = e.does.frees = 1000;
  e.does.threads = e.does.threads_at_once = 1;
  e.does.duration_ns = 10'000'000'000;
  e.does.live_peak = e.does.live_at_end = e.does.live_mean = 8 << 20;
  for (const std::uint64_t limit : observation::cache_limits) e.does.caches.push_back({limit, 0});
  e.peak_bytes = e.live_at_peak = 8 << 20;
  return e;
}

TEST(size_choice, takes_the_sizes_of_the_program) {
  const std::vector<size_use> uses{{264, 100'000, 100'000, 100'000, 1}};
  const size_choice chosen = choose_sizes(uses, 1);
  EXPECT_NE(std::ranges::find(chosen.sizes, 272U), chosen.sizes.end());
  // Rounding of the default: 288 bytes for each.
  EXPECT_GE(chosen.loss_by_default, 100'000U * (288 - 264));
  EXPECT_LT(chosen.loss, 100'000U * (272 - 264 + 2)) << "at most 2 bytes each are left over at the end of spans";
}

// SQLite's pages, each with a record of its cache.
TEST(size_choice, takes_sizes_that_are_longer_than_pages) {
  const std::vector<size_use> uses{
      {16, 330'000, 330'000, 330'000, 1}, {4104, 10, 10, 10, 1}, {4368, 6400, 6400, 6400, 1}};
  const size_choice chosen = choose_sizes(uses, 1);
  EXPECT_NE(std::ranges::find(chosen.sizes, 4368U), chosen.sizes.end());
  EXPECT_EQ(chosen.sizes.back(), 4608U) << "the first step from there on";
  EXPECT_GE(chosen.loss_by_default, 6400U * (4608 - 4368));
  EXPECT_LT(chosen.loss, 256U << 10);
}

TEST(size_choice, thinks_of_blocks_that_live_at_another_time) {
  const std::vector<size_use> uses{
      {16, 330'000, 100, 330'000, 1}, {48, 1000, 1000, 1000, 1}, {4368, 6400, 6400, 6400, 1}};
  EXPECT_EQ(choose_sizes(uses, 1).sizes.front(), 16U) << "48 would lose 3 KiB less at the peak, and 10 MiB later";
}

TEST(size_choice, thinks_of_blocks_that_are_freed_at_once) {
  const std::vector<size_use> uses{{16, 700'000, 100, 100, 1}, {48, 1000, 1000, 1000, 1}, {4368, 6400, 6400, 6400, 1}};
  EXPECT_EQ(choose_sizes(uses, 1).sizes.front(), 16U) << "48 would lose 3 KiB less at the peak";
}

TEST(size_choice, takes_fewer_sizes_where_many_threads_have_spans_of_each) {
  std::vector<size_use> uses;
  for (std::uint64_t size = 64; size <= 512; size += 32) uses.push_back({size, 10'000, 500, 500, 0xff});
  const size_choice chosen = choose_sizes(uses, 8);
  EXPECT_LT(chosen.sizes.size(), uses.size());
  EXPECT_LT(chosen.loss, chosen.loss_by_default);
  const size_choice of_one = choose_sizes(uses, 1);
  EXPECT_LT(of_one.loss_by_default - of_one.loss, 8U << 10) << "the steps have these sizes";
}

TEST(size_choice, makes_a_recipe_that_can_be_built) {
  std::vector<size_use> uses;
  for (std::uint64_t size = 8; size < 32768; size += 24) uses.push_back({size, 100, 100 + size, 100 + size, 1});
  const size_choice chosen = choose_sizes(uses, 1);
  ASSERT_FALSE(chosen.sizes.empty());
  ASSERT_LE(chosen.sizes.size(), size_list::most);
  for (std::size_t i = 0; i < chosen.sizes.size(); ++i) {
    EXPECT_EQ(chosen.sizes[i] % 16, 0U);
    EXPECT_TRUE(i == 0 || chosen.sizes[i] > chosen.sizes[i - 1]);
  }
  const size_class_plan steps;
  EXPECT_EQ(steps.size(steps.index(chosen.sizes.back())), chosen.sizes.back());
}

TEST(size_choice, keeps_the_default_where_nothing_is_lost) {
  const std::vector<size_use> uses{{256, 1'000'000, 1'000'000, 1'000'000, 1}};
  const size_choice chosen = choose_sizes(uses, 1);
  EXPECT_LE(chosen.loss, chosen.loss_by_default);
  EXPECT_LE(chosen.loss_by_default - chosen.loss, 16U << 10);
}

TEST(levers, none_where_nothing_is_seen) {
  EXPECT_EQ(names_of(candidates_for(plain(), fit_goal::both)), std::vector<std::string>{});
}

TEST(levers, each_has_its_reason) {
  fit_evidence remote = plain();
  remote.does.freed_by_others = 100;
  EXPECT_TRUE(has(candidates_for(remote, fit_goal::time), "remote frees stay"));
  EXPECT_FALSE(has(candidates_for(remote, fit_goal::memory), "remote frees stay"));

  fit_evidence swinging = plain();
  swinging.does.regrown = 8 << 20;
  EXPECT_TRUE(has(candidates_for(swinging, fit_goal::time), "pages stay"));
  EXPECT_TRUE(has(candidates_for(swinging, fit_goal::memory), "free pages go back"));

  fit_evidence sparse = plain();
  sparse.peak_bytes = 16 << 20;
  EXPECT_TRUE(has(candidates_for(sparse, fit_goal::memory), "short spans"));

  fit_evidence busy = plain();
  busy.does.caches = {{4 << 10, 900}, {16 << 10, 600}, {64 << 10, 500}, {256 << 10, 20}, {1 << 20, 2}};
  EXPECT_TRUE(has(candidates_for(busy, fit_goal::time), "large caches"));
  EXPECT_FALSE(has(candidates_for(busy, fit_goal::memory), "small caches"));
}

TEST(levers, every_change_says_why) {
  fit_evidence e = plain();
  e.does.regrown = e.does.large_bytes = 64 << 20;
  e.does.freed_by_others = 500;
  e.does.allocations = 5'000'000;
  e.does.threads = 40;
  e.does.sizes = {{264, 100'000, 20'000, 20'000, 1}, {1100, 10'000, 5'000, 5'000, 1}};
  e.peak_bytes = 32 << 20;
  e.page_faults = 50'000;
  const auto all = candidates_for(e, fit_goal::both);
  EXPECT_GE(all.size(), 8U);
  for (const candidate& c : all) {
    ASSERT_FALSE(c.changes.empty()) << c.name;
    for (const field_change& change : c.changes) {
      EXPECT_FALSE(change.reason.empty()) << c.name;
      EXPECT_TRUE(change.reason.ends_with('.')) << change.reason;
    }
  }
}

TEST(levers, the_documentation_has_their_table) {
  std::ifstream file(FIT_PAGE);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(levers_as_markdown()), std::string::npos) << levers_as_markdown();
}

TEST(candidate, one_that_contradicts_another_is_left_out) {
  const candidate a{"a", {{"pages.growth", "1", "one"}}},
      b{"b", {{"pages.growth", "2", "two"}, {"spans.kept_empty", "0", "two"}}},
      c{"c", {{"pages.growth", "1", "three"}, {"pages.prefault", "true", "three"}}};
  const candidate all = combined({a, b, c});
  EXPECT_EQ(all.name, "a + c");
  ASSERT_EQ(all.changes.size(), 2U);
  EXPECT_EQ(all.changes[0].reason, "one");
  EXPECT_EQ(all.changes[1].field, "pages.prefault");
}

TEST(candidate, a_header_has_each_reason_once_and_no_long_line) {
  const std::string reason =
      "Because of a reason that is so long that it needs more than one line of a comment to be told in full, and a bit "
      "more.";
  const std::string header = header_of(
      {"a", {{"pages.growth", bytes_in_code(2 << 20), reason}, {"pages.max_growth", bytes_in_code(3000), reason}}},
      {"Made for a test."});
  EXPECT_EQ(header.find("Because"), header.rfind("Because"));
  EXPECT_NE(header.find("r.pages.growth = 2 * heapwright::MiB;"), std::string::npos);
  EXPECT_NE(header.find("r.pages.max_growth = 3000;"), std::string::npos);
  std::istringstream lines(header);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

}  // namespace
}  // namespace heapwright::tool
