// The mathematics against values known from tables and by hand.
#include "statistics.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

TEST(statistics, the_median_is_the_middle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(statistics, student_t_is_that_of_the_tables) {
  const std::map<unsigned, double> table = {{1, 12.7062}, {2, 4.3027},  {6, 2.4469},  {10, 2.2281}, {11, 2.2010},
                                            {15, 2.1314}, {20, 2.0860}, {30, 2.0423}, {60, 2.0003}, {120, 1.9799}};
  for (const auto& [degrees, t] : table) EXPECT_NEAR(student_t(degrees, 0.05), t, 1e-4) << degrees;
  const std::map<unsigned, double> of_99_percent = {{1, 63.6567}, {2, 9.9248}, {5, 4.0321}, {10, 3.1693}, {29, 2.7564}};
  for (const auto& [degrees, t] : of_99_percent) EXPECT_NEAR(student_t(degrees, 0.01), t, 1e-4) << degrees;
}

TEST(statistics, a_constant_factor_is_found_exactly) {
  const double reference[] = {1, 2, 4, 8};
  const double doubled[] = {2, 4, 8, 16};
  const auto found = paired_ratio(doubled, reference);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->ratio, 2);
  EXPECT_DOUBLE_EQ(found->low, 2);
  EXPECT_DOUBLE_EQ(found->high, 2);
  EXPECT_EQ(found->judge(0.03), ratio_verdict::more);
}

TEST(statistics, the_interval_is_students) {
  // Logarithms of the ratios: 1, 2, 3. Mean 2, deviation 1, and t(2) / sqrt(3) = 2.48413.
  const double reference[] = {1, 1, 1};
  const double values[] = {std::exp(1), std::exp(2), std::exp(3)};
  const auto found = paired_ratio(values, reference);
  ASSERT_TRUE(found);
  EXPECT_NEAR(std::log(found->ratio), 2, 1e-12);
  EXPECT_NEAR(std::log(found->low), 2 - 2.48413, 1e-4);
  EXPECT_NEAR(std::log(found->high), 2 + 2.48413, 1e-4);
  EXPECT_EQ(found->judge(0.03), ratio_verdict::unclear);
}

TEST(statistics, equal_values_are_the_same) {
  const double values[] = {5, 6, 7};
  const auto found = paired_ratio(values, values);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->judge(0.03), ratio_verdict::same);
}

TEST(statistics, an_interval_that_says_nothing_is_not_the_same) {
  const auto of = [](double low, double high) { return ratio_estimate{std::sqrt(low * high), low, high, 0}; };
  EXPECT_EQ(of(0.87, 1.69).judge(0.03), ratio_verdict::unclear);
  EXPECT_EQ(of(0.98, 1.02).judge(0.03), ratio_verdict::same);
  EXPECT_EQ(of(0.98, 1.02).judge(0.01), ratio_verdict::unclear);
  EXPECT_EQ(of(1.01, 1.02).judge(0.03), ratio_verdict::same) << "there is a difference, too small to matter";
  EXPECT_EQ(of(1.01, 1.04).judge(0.03), ratio_verdict::more);
  EXPECT_EQ(of(0.90, 0.99).judge(0.03), ratio_verdict::less);
}

TEST(statistics, what_is_shown_alike_is_judged_alike) {
  const auto of = [](double low, double high) { return ratio_estimate{std::sqrt(low * high), low, high, 0}; };
  const ratio_estimate narrow = of(0.9711, 1.0151), wide = of(0.9652, 1.0249);  // 1 / 1.03 = 0.9709
  EXPECT_EQ(shown_bound(narrow.low), shown_bound(wide.low));
  EXPECT_EQ(shown_bound(narrow.high), shown_bound(wide.high));
  EXPECT_EQ(narrow.judge(0.03), ratio_verdict::same);
  EXPECT_EQ(wide.judge(0.03), ratio_verdict::same);
  EXPECT_EQ(of(0.9649, 1.02).judge(0.03), ratio_verdict::unclear) << "0.96-1.02";
  EXPECT_EQ(of(1.004, 1.06).judge(0.03), ratio_verdict::unclear) << "1.00-1.06";
  EXPECT_EQ(of(0.90, 0.996).judge(0.03), ratio_verdict::unclear) << "0.90-1.00";
  EXPECT_EQ(of(1.006, 1.06).judge(0.03), ratio_verdict::more) << "1.01-1.06";
  EXPECT_EQ(shown_bound(12.34), "12.3");
  EXPECT_EQ(shown_bound(123.4), "123");
}

TEST(statistics, the_rounds_that_would_decide_do) {
  // As many rounds as are said to be needed, with this mean and this deviation of their logarithms.
  const auto rounds_of = [](double mean, double deviation, unsigned rounds) {
    const double step =
        deviation * std::sqrt((rounds - 1.0) / rounds);  // half of them above, half below: even numbers only
    std::vector<double> values;
    for (unsigned i = 0; i < rounds; ++i) values.push_back(std::exp(mean + (i % 2 == 0 ? step : -step)));
    return *paired_ratio(values, std::vector<double>(rounds, 1.0));
  };
  for (const double mean : {0.0, 0.01, -0.05, 0.2}) {
    for (const double deviation : {0.05, 0.3}) {
      const ratio_estimate unclear = rounds_of(mean, deviation, 2);
      ASSERT_EQ(unclear.judge(0.03), ratio_verdict::unclear);
      const auto enough = unclear.rounds_to_decide(0.03, 1'000'000);
      ASSERT_TRUE(enough);
      const unsigned even = (*enough + 1) / 2 * 2;
      EXPECT_NE(rounds_of(mean, deviation, even).judge(0.03), ratio_verdict::unclear) << mean << ' ' << deviation;
      if (even <= 4) continue;
      EXPECT_EQ(rounds_of(mean, deviation, even - 2).judge(0.03), ratio_verdict::unclear) << mean << ' ' << deviation;
    }
  }
  EXPECT_FALSE(rounds_of(0, 0.3, 2).rounds_to_decide(0.03, 100));
}

TEST(statistics, no_interval_without_two_positive_pairs) {
  const double one[] = {1};
  const double zero[] = {0, 1};
  const double two[] = {1, 1};
  EXPECT_FALSE(paired_ratio(one, one));
  EXPECT_FALSE(paired_ratio(zero, two));
  EXPECT_FALSE(paired_ratio(two, zero));
}

TEST(statistics, every_contestant_follows_every_other_equally_often) {
  for (const unsigned n : {2u, 3u, 5u, 6u, 7u}) {
    const unsigned rounds = n % 2 == 0 ? n : 2 * n;
    std::map<std::pair<unsigned, unsigned>, unsigned> followed;
    std::map<std::pair<unsigned, unsigned>, unsigned> placed;
    for (unsigned round = 0; round < rounds; ++round) {
      const auto order = order_of_round(round, n);
      ASSERT_EQ(order.size(), n);
      for (unsigned place = 0; place < n; ++place) {
        ++placed[{order[place], place}];
        if (place > 0) ++followed[{order[place - 1], order[place]}];
      }
    }
    EXPECT_EQ(placed.size(), n * n) << n;
    EXPECT_EQ(followed.size(), n * (n - 1)) << n;
    for (const auto& [pair, times] : followed)
      EXPECT_EQ(times, rounds / n) << n << ": " << pair.first << ", " << pair.second;
  }
}

TEST(statistics, the_interval_of_a_difference_leaves_out_what_coins_allow) {
  const std::vector<double> none(9, 0);
  const std::vector<double> values{5, 1, 9, 3, 7, 2, 8, 4, 600};
  const auto of = [&](std::size_t rounds) {
    return paired_difference(std::span(values).first(rounds), std::span(none).first(rounds));
  };
  EXPECT_FALSE(of(1));
  // Of 5 all are within with 94 %; of 9 two are left out, which leaves 96 %.
  EXPECT_EQ(of(5)->median, 5);
  EXPECT_EQ(of(5)->low, 1);
  EXPECT_EQ(of(5)->high, 9);
  EXPECT_EQ(of(9)->median, 5);
  EXPECT_EQ(of(9)->low, 2);
  EXPECT_EQ(of(9)->high, 9) << "not the one that a noise has made";
}

}  // namespace
}  // namespace heapwright::tool
