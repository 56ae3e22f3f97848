// An hour at full rate, older time coarser, and no peak lost.
#include "history.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

history filled(std::uint64_t from_second, std::uint64_t to_second) {
  history h;
  for (std::uint64_t s = from_second; s < to_second; ++s)
    h.add({s * second, s == from_second + 1234 ? 1'000'000 : 10, 1, s * 100, s});
  return h;
}

TEST(history, keeps_an_hour_whole_and_longer_time_bounded) {
  EXPECT_EQ(filled(1000, 1000 + 3600).size(), 3600U);
  EXPECT_LT(filled(1000, 1000 + 200'000).size(), 3600U + 8'640U + 8'640U + 3);
}

TEST(history, keeps_a_peak_however_old) {
  const history h = filled(1000, 1000 + 200'000);
  for (const std::size_t most : {10U, 100U, 100'000U}) {
    const auto points = h.points(0, most);
    EXPECT_LE(points.size(), most);
    const bool has_peak = std::any_of(points.begin(), points.end(), [](const auto& p) { return p.live == 1'000'000; });
    EXPECT_TRUE(has_peak) << most;
    EXPECT_EQ(points.back().at_ns, (1000 + 200'000 - 1) * second);
    EXPECT_TRUE(std::is_sorted(points.begin(), points.end(), [](auto& a, auto& b) { return a.at_ns < b.at_ns; }));
  }
}

// A damaged segment can tell of any time.
TEST(history, takes_the_last_times_that_there_are) {
  history h;
  h.add({UINT64_MAX - 1, 10, 1, 1, 1});
  h.add({UINT64_MAX, 20, 1, 2, 2});
  const auto points = h.points(0, 100);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points.front().live, 20);
}

TEST(history, gives_only_what_is_newer) {
  const auto points = filled(1000, 2000).points(1990 * second, 100);
  ASSERT_EQ(points.size(), 9U);
  EXPECT_EQ(points.front().at_ns, 1991 * second);
}

}  // namespace
}  // namespace heapwright::tool
