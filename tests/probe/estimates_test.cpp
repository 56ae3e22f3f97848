// What is shown of a site is an estimate: here of a hundred runs of the same program, each sampled
// anew, in most of which it must be as near to the truth as the theory of sampling says, and right
// on average.
//
//   estimates_test PROBE PROGRAM
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "segment_reader.hpp"

namespace {

namespace fs = std::filesystem;
using namespace heapwright::segment;

std::string probe, program;

constexpr int runs = 100;
constexpr int interval = 64 * 1024;

// Eight estimates are judged, each in three ways. With all that is right:
// - the number of runs in the interval of 95 % is binomial(100, 0.95), and 78 or fewer have the
//   probability 4e-9;
// - the sum of 100 errors in standard deviations is normal with a deviation of 10: beyond 55 with
//   the probability 4e-8;
// - the sum of their squares is chi-square with 100 degrees of freedom: below 40 with the
//   probability 1e-8.
// Together these are 5e-7: a right estimator fails less than once in a million times. A wrong one:
// with a bias of 1.4 standard deviations some 71 runs are in the interval; with one of 0.7 the sum
// is near 70. A standard deviation is 1.4 % to 13 % of the figures here.
constexpr int fewest_within = 79;
constexpr double farthest_sum = 55;
constexpr double least_sum_of_squares = 40;

struct judged {
  int within = 0;
  double sum = 0, sum_of_squares = 0, error_in_percent = 0;
  double variances = 0;  ///< that the probe has estimated, in true ones

  void add(double estimated, double true_value, double variance) {
    const double error = (estimated - true_value) / std::sqrt(variance);
    within += std::abs(error) <= 1.959964;
    sum += error;
    sum_of_squares += error * error;
    error_in_percent = 100 * std::sqrt(variance) / true_value;
  }
};

/// Who chooses the interval: this test, once; the program, now and then; the probe.
enum class sampling { fixed, changing, adapting };

/// What it prints. No shell expands anything: paths may be what they like.
std::string output_of_a_run(const fs::path& segments, sampling by) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const std::string interval_text = std::to_string(interval);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    ::close(ends[0]);
    ::close(ends[1]);
    ::setenv("LD_PRELOAD", probe.c_str(), 1);
    ::setenv("HEAPWRIGHT_SEGMENT_DIR", segments.c_str(), 1);
    ::setenv("HEAPWRIGHT_SAMPLE", by == sampling::adapting ? "auto" : interval_text.c_str(), 1);
    const char* const changing = by == sampling::changing ? "changing" : nullptr;
    ::execl(program.c_str(), program.c_str(), interval_text.c_str(), changing, nullptr);
    std::_Exit(127);
  }
  ::close(ends[1]);
  std::string text;
  char some[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], some, sizeof some)) > 0;) text.append(some, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return text;
}

/// All of a site's stacks: those that end in its code.
stack_figures sum_between(const std::vector<stack_figures>& stacks, std::uint64_t begin, std::uint64_t end) {
  stack_figures sum;
  for (const stack_figures& s : stacks) {
    if (s.addresses.empty() || s.addresses[0] <= begin || s.addresses[0] > end) continue;
    sum.samples += s.samples;
    sum.allocations += s.allocations;
    sum.frees += s.frees;
    sum.allocated_bytes += s.allocated_bytes;
    sum.freed_bytes += s.freed_bytes;
    sum.allocated_variance += s.allocated_variance;
    sum.freed_variance += s.freed_variance;
  }
  return sum;
}

/// Where the interval changes, errors are judged by the variance that the probe has estimated,
/// which a viewer shows.
void add_a_run(std::map<std::string, judged>& all, const fs::path& segments, sampling by) {
  std::istringstream lines(output_of_a_run(segments, by));
  const auto files = segments_in(segments);
  ASSERT_EQ(files.size(), 1u);
  const segment_reader reader(files[0]);
  if (by == sampling::fixed) {
    ASSERT_EQ(reader.process().interval, std::uint64_t{interval});
  }
  ASSERT_EQ(reader.process().lost_samples, 0u);
  const auto stacks = reader.stacks();
  int sites = 0;
  std::string name;
  std::uint64_t begin = 0, end = 0;
  while (lines >> name >> std::hex >> begin >> end >> std::dec) {
    const stack_figures seen = sum_between(stacks, begin, end);
    ASSERT_GT(seen.samples, 0u) << name;
    const std::pair<const char*, double> estimates[] = {{" allocations", seen.allocations},
                                                        {" bytes allocated", static_cast<double>(seen.allocated_bytes)},
                                                        {" live blocks", seen.live_blocks()},
                                                        {" live bytes", static_cast<double>(seen.live_bytes())}};
    std::map<std::string, std::pair<double, double>> trues;
    for (const auto& [what, estimated] : estimates) {
      double true_value = 0, variance = 0;
      ASSERT_TRUE(lines >> true_value >> variance);
      if (by == sampling::fixed) all[name + what].add(estimated, true_value, variance);
      trues[what] = {true_value, variance};
    }
    const std::tuple<const char*, std::uint64_t, double> shown[] = {
        {" bytes allocated", seen.allocated_bytes, seen.allocated_variance},
        {" live bytes", seen.live_bytes(), seen.live_variance()}};
    for (const auto& [what, bytes, variance] : shown) {
      judged& j = all[name + what];
      j.variances += variance / trues[what].second;
      if (by != sampling::fixed) j.add(static_cast<double>(bytes), trues[what].first, variance);
    }
    ++sites;
  }
  ASSERT_EQ(sites, 2);
  fs::remove(files[0]);
}

std::map<std::string, judged> judged_runs(sampling by) {
  char folder[] = "/dev/shm/heapwright-test.XXXXXX";
  EXPECT_NE(::mkdtemp(folder), nullptr);
  const std::shared_ptr<void> remove_it(nullptr, [&](void*) { fs::remove_all(folder); });
  std::map<std::string, judged> all;
  for (int run = 0; run < runs && !::testing::Test::HasFatalFailure(); ++run) add_a_run(all, folder, by);
  for (const auto& [what, j] : all)
    std::printf("%-27s %3d of %d within, the errors' sum is %6.1f and their squares' %6.1f deviations (each %.1f %%)\n",
                what.c_str(), j.within, runs, j.sum, j.sum_of_squares, j.error_in_percent);
  return all;
}

TEST(Estimates, AreWithinTheirConfidenceIntervalsAndRightOnAverage) {
  const auto all = judged_runs(sampling::fixed);
  ASSERT_EQ(all.size(), 8u);
  for (const auto& [what, j] : all) {
    EXPECT_GE(j.within, fewest_within) << what;
    EXPECT_LE(std::abs(j.sum), farthest_sum) << what << ": is biased";
    EXPECT_GE(j.sum_of_squares, least_sum_of_squares)
        << what << ": does not vary as it should, so runs are not independent of each other";
  }
}

// Of a few hundred samples a variance is known to some per cent; the mean of a hundred such to less
// than one. Those of blocks of all sizes hang on few large ones.
TEST(Estimates, ShowTheErrorThatTheyHave) {
  for (const auto& [what, j] : judged_runs(sampling::fixed)) {
    if (what.find("bytes") != std::string::npos) {
      EXPECT_NEAR(j.variances / runs, 1, 0.1) << what;
    }
  }
}

class EstimatesWhileTheIntervalChanges : public ::testing::TestWithParam<sampling> {};

TEST_P(EstimatesWhileTheIntervalChanges, AreRightOnAverage) {
  const auto all = judged_runs(GetParam());
  ASSERT_EQ(all.size(), 4u);
  for (const auto& [what, j] : all) {
    EXPECT_GE(j.within, fewest_within) << what;
    EXPECT_LE(std::abs(j.sum), farthest_sum) << what << ": is biased";
  }
}

INSTANTIATE_TEST_SUITE_P(By, EstimatesWhileTheIntervalChanges,
                         ::testing::Values(sampling::changing, sampling::adapting),
                         [](const auto& by) { return by.param == sampling::changing ? "TheProgram" : "TheProbe"; });

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    std::fputs("usage: estimates_test PROBE PROGRAM\n", stderr);
    return 2;
  }
  probe = argv[1];
  program = argv[2];
  return RUN_ALL_TESTS();
}
