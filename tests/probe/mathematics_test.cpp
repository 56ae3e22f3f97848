// The probe's own logarithm and exponential are as good as libm's, and what samples stand for is
// right on average.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../../probe/poisson.hpp"
#include "../../segment/sample_weight.hpp"
#include "../../segment/segment.hpp"

namespace heapwright::probe {
namespace {

using namespace segment;

TEST(Mathematics, TheLogarithmIsLibms) {
  for (double x = 1e-17; x < 1e18; x *= 1.0173) EXPECT_NEAR(natural_logarithm(x), std::log(x), 1e-13) << x;
  EXPECT_DOUBLE_EQ(natural_logarithm(1), 0);
}

TEST(Mathematics, TheExponentialIsLibms) {
  EXPECT_EQ(one_minus_exp_of_minus(0), 0);
  EXPECT_EQ(one_minus_exp_of_minus(1e9), 1);
  for (double x = 1e-12; x < 100; x *= 1.0391) {
    const double expected = -std::expm1(-x);
    EXPECT_NEAR(one_minus_exp_of_minus(x) / expected, 1, 1e-13) << x;
  }
}

TEST(Sampling, WhatStandsForMoreThan64BitsIsTheLargestNumber) {
  EXPECT_EQ(weight_of(UINT64_MAX, 4096).bytes, UINT64_MAX);
  EXPECT_EQ(weight_of(1, sampling_interval(UINT64_MAX).bytes()).blocks, UINT64_MAX);
}

TEST(Sampling, AllBlocksAreSampledWithAnIntervalOfOne) {
  std::uint64_t state = 1;
  EXPECT_EQ(bytes_to_next_sample(1, state), 0);
  EXPECT_EQ(weight_of(100, 1).blocks, 1024u);
  EXPECT_EQ(weight_of(100, 1).bytes, 100u);
}

TEST(Sampling, IntervalsTakeSixteenBits) {
  for (std::uint64_t interval = 1; interval < 2048; ++interval)
    EXPECT_EQ(sampling_interval(interval).bytes(), interval);
  for (std::uint64_t interval = 1; interval != 0; interval *= 2) {
    EXPECT_EQ(sampling_interval(interval).bytes(), interval);
    EXPECT_EQ(sampling_interval::of_code(sampling_interval(interval).code()).bytes(), interval);
  }
  std::uint64_t state = 1;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t interval = std::max<std::uint64_t>(next_random(state) >> next_random(state) % 64, 1);
    const std::uint64_t is = sampling_interval(interval).bytes();
    EXPECT_LE(is, interval);
    EXPECT_LE(interval - is, interval / 1000);
  }
}

/// What the probe does with each allocation of one thread.
struct sampler {
  std::uint64_t interval;
  std::uint64_t state;
  std::int64_t until = bytes_to_next_sample(interval, state);
  double blocks = 0, bytes = 0, variance = 0;

  void allocate(std::uint64_t size) {
    until -= static_cast<std::int64_t>(size);
    if (until >= 0) return;
    until = bytes_to_next_sample(interval, state);
    const weight w = weight_of(size, interval);
    blocks += static_cast<double>(w.blocks) / 1024;
    bytes += static_cast<double>(w.bytes);
    // Of the Horvitz-Thompson estimator, estimated from the sample itself.
    const double p = static_cast<double>(size) / static_cast<double>(w.bytes);
    variance += (1 - p) * static_cast<double>(w.bytes) * static_cast<double>(w.bytes);
  }
};

TEST(Sampling, EstimatesAreWithinTheirConfidenceIntervalsAsOftenAsTheyShould) {
  constexpr std::uint64_t interval = 64 * 1024;
  constexpr int runs = 400;
  int within = 0;
  double sum_of_ratios = 0, sum_of_block_ratios = 0;
  for (unsigned run = 1; run <= runs; ++run) {
    sampler s{interval, run * 0x9E3779B97F4A7C15};
    std::uint64_t sizes = run;
    double true_bytes = 0, true_blocks = 0;
    while (true_bytes < 100e6) {
      const std::uint64_t r = next_random(sizes);
      const std::uint64_t size = 16 + (r % 50 == 0 ? r / 64 % 300'000 : r / 64 % 1'000);
      s.allocate(size);
      true_bytes += static_cast<double>(size);
      ++true_blocks;
    }
    within += std::abs(s.bytes - true_bytes) <= 1.96 * std::sqrt(s.variance);
    sum_of_ratios += s.bytes / true_bytes;
    sum_of_block_ratios += s.blocks / true_blocks;
  }
  // Of 400 runs with a probability of 0.95 fewer than 366 are within once in 700 tries; these are
  // always the same 400.
  EXPECT_GE(within, 366);
  EXPECT_LT(within, runs) << "the intervals are so wide that they say nothing";
  EXPECT_NEAR(sum_of_ratios / runs, 1, 0.005);
  EXPECT_NEAR(sum_of_block_ratios / runs, 1, 0.01);
}

}  // namespace
}  // namespace heapwright::probe

namespace heapwright::segment {
namespace {

TEST(SizeScale, ClassesFollowEachOtherAndHoldWhatTheySay) {
  for (unsigned c = 0; c + 1 < size_scale::count; ++c) {
    EXPECT_LT(size_scale::largest(c), size_scale::largest(c + 1));
    EXPECT_EQ(size_scale::index(size_scale::largest(c)), c);
    EXPECT_EQ(size_scale::index(size_scale::largest(c) + 1), c + 1);
  }
  EXPECT_EQ(size_scale::index(0), 0u);
  EXPECT_EQ(size_scale::index(~std::uint64_t{0}), size_scale::count - 1);
}

TEST(Lifetimes, AreCountedByPowersOfFour) {
  EXPECT_EQ(lifetime_bucket(999), 0u);
  EXPECT_EQ(lifetime_bucket(1000), 1u);
  EXPECT_EQ(lifetime_bucket(3'999), 1u);
  EXPECT_EQ(lifetime_bucket(4'000), 2u);
  EXPECT_EQ(lifetime_bucket(~std::uint64_t{0}), lifetime_buckets - 1);
}

}  // namespace
}  // namespace heapwright::segment
