// Thinning of live samples: who is thinned, and that estimates stay right on average.
#include "../../probe/thinning.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace {

using heapwright::probe::live_sample_counts;
using heapwright::probe::thinned;
using heapwright::segment::sampling_interval;
using heapwright::segment::weight_of;

TEST(Thinning, KeepsAboutHalfWhateverTheBlocks) {
  for (const std::uint64_t bytes : {1ULL, 100ULL, 4096ULL, 65536ULL, 1ULL << 30, 1ULL << 47}) {
    for (const std::uint64_t interval : {1ULL, 4096ULL, 262144ULL, 1ULL << 27}) {
      const auto t = thinned(bytes, sampling_interval(interval));
      EXPECT_GT(t.kept, 0.3) << bytes << ' ' << interval;
      EXPECT_LE(t.kept, 0.6) << bytes << ' ' << interval;
    }
  }
}

TEST(Thinning, WhatIsKeptStandsForWhatIsDropped) {
  for (const std::uint64_t bytes : {16ULL, 5000ULL, 65536ULL, 1ULL << 20}) {
    sampling_interval interval(4096);
    for (int passes = 0; passes < 5; ++passes) {
      const auto before = static_cast<double>(weight_of(bytes, interval).bytes);
      const auto t = thinned(bytes, interval);
      EXPECT_NEAR(t.kept * static_cast<double>(weight_of(bytes, t.interval).bytes), before, before / 1000) << bytes;
      interval = t.interval;
    }
  }
}

TEST(Thinning, LeavesStacksWithFewSamplesAlone) {
  const sampling_interval interval(4096);
  live_sample_counts counts;
  counts.begin(1);
  for (int i = 0; i < 2000; ++i) counts.add(7, 65536, interval);
  for (int i = 0; i < 30; ++i) counts.add(1001, 100, interval);
  EXPECT_EQ(counts.samples(), 2030U);
  EXPECT_TRUE(counts.is_thinned(7, 65536, interval));
  EXPECT_FALSE(counts.is_thinned(1001, 100, interval));
}

TEST(Thinning, LeavesSamplesThatStandForMuchAlone) {
  live_sample_counts counts;
  counts.begin(1);
  for (int i = 0; i < 100; ++i) counts.add(7, 100, sampling_interval(4096));
  for (int i = 0; i < 10; ++i) counts.add(7, 100, sampling_interval(65536));
  EXPECT_TRUE(counts.is_thinned(7, 100, sampling_interval(4096)));
  EXPECT_FALSE(counts.is_thinned(7, 100, sampling_interval(65536)));
}

struct live_sample {
  std::uint32_t stack;
  std::uint64_t bytes;
  sampling_interval interval{1};
};

/// As sample_table::thin does it.
void thin(std::vector<live_sample>& all, std::mt19937_64& random) {
  live_sample_counts counts;
  counts.begin(random());
  for (const live_sample& s : all) counts.add(s.stack, s.bytes, s.interval);
  std::vector<live_sample> kept;
  for (live_sample s : all) {
    if (counts.is_thinned(s.stack, s.bytes, s.interval)) {
      const auto t = thinned(s.bytes, s.interval);
      if (std::uniform_real_distribution<>()(random) >= t.kept) continue;
      s.interval = t.interval;
    }
    kept.push_back(s);
  }
  all = kept;
}

// A stack of large blocks, one of small ones, and rare ones; all are sampled at first. The true
// error of the sum, in standard deviations as the weights tell them, is 1 on average.
TEST(Thinning, EstimatesStayRightAndTheirErrorsKnown) {
  std::mt19937_64 random(1);
  double sum = 0, squares = 0;
  constexpr int runs = 400;
  for (int run = 0; run < runs; ++run) {
    std::vector<live_sample> all;
    double truth = 0;
    for (std::uint32_t i = 0; i < 4000; ++i) {
      all.push_back({i < 2000 ? 1U : i < 3900 ? 2U : i, i < 2000 ? 65536U : 40 + i, sampling_interval(1)});
      truth += static_cast<double>(all.back().bytes);
    }
    int passes = 0;
    while (all.size() > 500) {
      const std::size_t before = all.size();
      thin(all, random);
      ASSERT_LT(all.size(), before * 19 / 20) << "a pass drops too little";
      ASSERT_LT(++passes, 30);
    }
    double estimate = 0, variance = 0;
    for (const live_sample& s : all) {
      const auto w = weight_of(s.bytes, s.interval);
      estimate += static_cast<double>(w.bytes);
      variance += w.variance;
    }
    const double error = (estimate - truth) / std::sqrt(variance);
    sum += error;
    squares += error * error;
  }
  EXPECT_LT(std::abs(sum), 4 * std::sqrt(runs));
  EXPECT_NEAR(squares / runs, 1, 0.3);
}

}  // namespace
