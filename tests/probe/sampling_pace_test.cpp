// The policy of the sampling interval, by numbers: a program that allocates at a rate, samples of
// which each takes some time, and windows as observer.cpp ends them.
#include "../../probe/sampling_pace.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace {

using heapwright::probe::sampling_pace;

/// A program, by what it does in a second of the processor's time.
struct program {
  double bytes_per_ns = 0;  ///< that it allocates
  double sample_ns = 1000;  ///< that a sample takes
  double load = 1;          ///< of the time that passes, it has the processor
};

class simulated {
 public:
  /// Runs for so long, by the processor's time. Returns the share of it that samples took.
  double run(const program& p, double seconds) {
    const double begin = processor_ns_, spent = sampling_ns_;
    while (processor_ns_ < begin + seconds * 1e9) {
      const double for_64 = 64.0 * static_cast<double>(interval) / p.bytes_per_ns;
      const double window_ns = std::min(for_64, 100e6);
      const double samples = std::max(window_ns * p.bytes_per_ns / static_cast<double>(interval), 1.0);
      sampling_ns_ += samples * p.sample_ns;
      processor_ns_ +=
          std::max(window_ns, samples * static_cast<double>(interval) / p.bytes_per_ns) + samples * p.sample_ns;
      interval = pace_.next({static_cast<std::uint64_t>(samples), static_cast<std::uint64_t>(samples) * interval,
                             static_cast<std::uint64_t>(sampling_ns_), static_cast<std::uint64_t>(processor_ns_),
                             static_cast<std::uint64_t>(processor_ns_ / p.load)});
    }
    return (sampling_ns_ - spent) / (processor_ns_ - begin);
  }

  std::uint64_t interval = sampling_pace::finest;

 private:
  sampling_pace pace_;
  double sampling_ns_ = 0, processor_ns_ = 0;
};

TEST(SamplingPace, HoldsItsShareWhateverTheRate) {
  for (const double gigabytes_per_second : {0.1, 0.5, 1.0, 2.0}) {
    for (const double sample_ns : {500.0, 2000.0, 5000.0}) {
      simulated s;
      const program p{gigabytes_per_second, sample_ns};
      s.run(p, 1);
      EXPECT_NEAR(s.run(p, 5), sampling_pace::share, sampling_pace::share / 10)
          << gigabytes_per_second << ' ' << sample_ns;
    }
  }
}

TEST(SamplingPace, StaysFineWhereLittleIsAllocated) {
  simulated s;
  EXPECT_LT(s.run({0.001, 1000}, 5), sampling_pace::share);
  EXPECT_EQ(s.interval, sampling_pace::finest);
}

TEST(SamplingPace, SpendsAMillisecondInASecondOnAProgramThatMostlyWaits) {
  for (const double load : {0.008, 0.02, 0.05, 0.12}) {
    simulated s;
    const program p{2, 2500, load};
    s.run(p, 0.5);
    EXPECT_NEAR(s.run(p, 1) * load, sampling_pace::share_of_passing, sampling_pace::share_of_passing / 10) << load;
  }
}

TEST(SamplingPace, FollowsAProgramThatBecomesBusyAndFallsIdle) {
  simulated s;
  const program idle{0.001, 2000}, busy{2, 2000};
  s.run(idle, 2);
  EXPECT_LT(s.run(busy, 2), 2 * sampling_pace::share) << "a change to busy costs too much";
  const std::uint64_t coarse = s.interval;
  EXPECT_GT(coarse, 100 * sampling_pace::finest);
  s.run(idle, 5);
  EXPECT_LT(s.interval, coarse / 20) << "a change to idle is not followed";
}

TEST(SamplingPace, StaysWithinItsLimitsWhateverItIsTold) {
  sampling_pace pace;
  constexpr std::uint64_t all = ~std::uint64_t{0};
  for (const sampling_pace::window& w : {sampling_pace::window{0, 0, 0, 0, 0},
                                         {1, all, all, 1, 1},
                                         {all, all, all, all, all},
                                         {1, 1, 0, all, all},
                                         {1, 0, 5, 3, 0},
                                         {64, 1 << 20, 100, 50, 60}}) {
    const std::uint64_t interval = pace.next(w);
    EXPECT_GE(interval, sampling_pace::finest);
    EXPECT_LE(interval, sampling_pace::coarsest);
  }
}

}  // namespace
