// Which call paths are thinned, by numbers.
#include "../../probe/sampled_paths.hpp"

#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace {

using heapwright::probe::sampled_paths;

constexpr std::uintptr_t code = 0x555500001000, stack = 0x7ffe00000000;

TEST(SampledPaths, AFrequentPathIsThinnedARareOneIsNot) {
  sampled_paths paths;
  std::mt19937 random(1);
  int rare = 0, thinned_rare = 0, frequent = 0, most_thinned_frequent = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (random() % 500 == 0) {
      ++rare;
      thinned_rare += paths.count(code + 0x1000, stack) != 0;
    } else {
      ++frequent;
      most_thinned_frequent += paths.count(code, stack) == sampled_paths::most_thinning;
    }
  }
  EXPECT_GT(rare, 100);
  EXPECT_EQ(thinned_rare, 0);
  EXPECT_GT(most_thinned_frequent, frequent * 99 / 100);
}

TEST(SampledPaths, PathsFromOnePlaceAreToldApartByTheStack) {
  sampled_paths paths;
  for (int i = 0; i < 100; ++i) (void)paths.count(code, stack);
  EXPECT_EQ(paths.count(code, stack), sampled_paths::most_thinning);
  EXPECT_EQ(paths.count(code, stack - 0x100), 0u);
}

TEST(SampledPaths, APathThatIsFrequentNoLongerIsNoLongerThinned) {
  sampled_paths paths;
  for (int i = 0; i < 2000; ++i) (void)paths.count(code, stack);
  for (std::uintptr_t i = 0; i < 20'000; ++i) (void)paths.count(code + 16 * (1 + i % 2000), stack);
  EXPECT_EQ(paths.count(code, stack), 0u);
}

TEST(SampledPaths, ManyRarePathsAreNotThinned) {
  sampled_paths paths;
  int thinned = 0;
  for (std::uintptr_t i = 0; i < 100'000; ++i) thinned += paths.count(code + 16 * (i % 5000), stack) != 0;
  EXPECT_EQ(thinned, 0);
}

}  // namespace
