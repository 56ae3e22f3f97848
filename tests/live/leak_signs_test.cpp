#include "leak_signs.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace {

using namespace heapwright::tool;

constexpr std::uint64_t second = 1'000'000'000;
constexpr time_span minute{100 * second, 160 * second};

/// `samples` freed blocks of 64 KiB each, all of which lived so long.
freed_blocks freed_after(double seconds, std::uint64_t samples = 1) {
  freed_blocks freed;
  freed.bytes_by_lifetime[heapwright::segment::lifetime_bucket(static_cast<std::uint64_t>(seconds * 1e9))] =
      samples * 64 * 1024;
  return freed;
}

/// `age(u)`: seconds before the end, for a number u between 0 and 1.
template <class Age>
leak_signs judged(std::size_t samples, Age age, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<aged_block> blocks;
  for (std::size_t i = 0; i < samples; ++i)
    blocks.push_back({minute.end_ns - static_cast<std::uint64_t>(age(uniform(random)) * 1e9), 64 * 1024});
  return signs_of_leak(blocks, freed_after(0.001), minute);
}

/// In how many of 200 runs the site grows.
template <class Age>
int growing(std::size_t samples, Age age) {
  int count = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) count += judged(samples, age, seed).is_growing;
  return count;
}

double even(double u) { return 60 * u; }

TEST(LeakSigns, FewSamplesAreNotJudged) {
  EXPECT_FALSE(judged(7, even).has_enough_samples);
  EXPECT_TRUE(judged(100, even).has_enough_samples);
  const leak_signs of_start = judged(100, [](double) { return 59.5; });
  EXPECT_FALSE(of_start.has_enough_samples) << "what a program allocates at its start is not judged";
}

TEST(LeakSigns, BlocksOfAllAgesAreALeak) {
  EXPECT_GE(growing(10, even), 150);
  EXPECT_GE(growing(20, even), 180);
  EXPECT_GE(growing(1000, even), 199);
}

TEST(LeakSigns, FewSamplesSayNothing) { EXPECT_EQ(growing(7, even), 0); }

TEST(LeakSigns, BlocksThatAreFreedInTimeAreNone) {
  for (const double seconds : {0.01, 1.0, 7.0})
    EXPECT_LE(growing(50, [=](double u) { return std::min(-seconds * std::log(u), 60.0); }), 2) << seconds;
}

TEST(LeakSigns, WhatIsSetUpAndKeptIsNone) {
  EXPECT_EQ(growing(1000, [](double u) { return 60 - 2 * u; }), 0) << "within the first seconds";
  EXPECT_EQ(growing(1000, [](double u) { return 60 - 20 * u; }), 0) << "a cache that fills for a third of the time";
}

TEST(LeakSigns, ALeakThatComesAndGoesWithTheLoadIsOne) {
  EXPECT_GE(growing(1000, [](double u) { return 60 * u + 5 * std::sin(6.28 * u); }), 199);
}

/// A cache of 240 blocks is filled in the first second; from then on each second one is added and
/// `freed` of the oldest are freed.
bool grows_with(std::uint64_t freed_in_a_second) {
  std::vector<aged_block> blocks;
  for (std::uint64_t i = 60 * freed_in_a_second; i < 240; ++i) blocks.push_back({minute.begin_ns, 64 * 1024});
  freed_blocks freed;
  for (std::uint64_t i = 1; i <= 60; ++i) {
    blocks.push_back({minute.begin_ns + i * second, 64 * 1024});
    freed.bytes_by_lifetime[heapwright::segment::lifetime_bucket(i * second)] += freed_in_a_second * 64 * 1024;
  }
  return signs_of_leak(blocks, freed, minute).is_growing;
}

TEST(LeakSigns, ACacheThatIsFullAndRenewedSlowlyIsNone) {
  EXPECT_FALSE(grows_with(1));
  EXPECT_TRUE(grows_with(0)) << "nothing of it is freed: it grows";
}

TEST(LeakSigns, ALeakIsOneThoughOtherBlocksOfItsSiteLiveForAWhile) {
  std::vector<aged_block> blocks;
  for (std::uint64_t i = 0; i < 60; ++i) blocks.push_back({minute.begin_ns + i * second, 64 * 1024});
  EXPECT_TRUE(signs_of_leak(blocks, freed_after(3, 10'000), minute).is_growing);
}

TEST(LeakSigns, OneLargeSampleAmongManySmallOnesSaysLittle) {
  std::vector<aged_block> blocks;
  for (std::uint64_t i = 0; i < 60; ++i) blocks.push_back({minute.begin_ns + i * second, 1});
  EXPECT_TRUE(signs_of_leak(blocks, {}, minute).is_growing);
  blocks.push_back({minute.begin_ns + 30 * second, 1e6});
  EXPECT_FALSE(signs_of_leak(blocks, {}, minute).is_growing);
}

TEST(LeakSigns, FiguresAreThoseOfTheBlocks) {
  const std::vector<aged_block> blocks{{minute.begin_ns, 100, 7},
                                       {minute.end_ns - second, 600, 900},
                                       {minute.end_ns, 60},
                                       {0, 1},
                                       {~std::uint64_t{0}, 2}};
  const leak_signs signs = signs_of_leak(blocks, freed_after(10), minute);
  EXPECT_EQ(signs.samples, 5u);
  EXPECT_EQ(signs.bytes_by_time.front(), 101);
  EXPECT_EQ(signs.bytes_by_time.back(), 662);
  EXPECT_NEAR(signs.bytes_per_second, 662 / 30.0, 1e-9);
  EXPECT_NEAR(signs.variance, 1, 1e-9);
  EXPECT_EQ(signs.overdue_bytes, 101);
}

TEST(LeakSigns, NoTimeAndNoBlocks) {
  EXPECT_FALSE(signs_of_leak({}, {}, minute).is_growing);
  EXPECT_FALSE(signs_of_leak(std::vector<aged_block>(100, {5, 5}), {}, {5, 5}).is_growing);
}

}  // namespace
