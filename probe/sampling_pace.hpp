// How often to sample: the interval that holds the time spent on samples to a share of the
// program's processor time, or to a smaller share of the time that passes, if that is more: a
// server that waits for requests most of the time must not wait for its leaks too.
//
// A policy without clocks: observer.cpp tells it numbers at the end of each window of samples.
//
//   budget   = max(share * ns of the processor, share_of_passing * ns that pass)
//   interval = bytes allocated * ns per sample / budget
//
// Both factors come from sums over the last few hundred samples: older windows count less with each
// new one. How many samples are live does not matter here: thinning.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heapwright::probe {

class sampling_pace {
 public:
  static constexpr std::uint64_t finest = 4 * 1024, coarsest = 16 * 1024 * 1024;

  /// Of the program's processor time, as measured around each sample. Not in it: what is done when
  /// a sampled block is freed, and what samples push out of the processor's caches.
  static constexpr double share = 0.008;

  /// Of the time that passes: 1 ms in a second.
  static constexpr double share_of_passing = 0.001;

  /// A window ends with its last sample: the 64th, or the first one after 100 ms.
  static constexpr std::uint64_t window_samples = 64, window_ns = 100'000'000;

  struct window {
    std::uint64_t samples = 0;       ///< in this window
    std::uint64_t bytes = 0;         ///< that these stand for, about: the sum of the intervals they were drawn by
    std::uint64_t sampling_ns = 0;   ///< spent on samples since the process began, by all threads
    std::uint64_t processor_ns = 0;  ///< that the process has had since it began
    std::uint64_t passed_ns = 0;     ///< since it began
  };

  /// The interval for the next window, from the one that ends. One thread at a time.
  [[nodiscard]] constexpr std::uint64_t next(const window& ended) noexcept {
    constexpr double memory = 256;  // samples
    const auto samples = static_cast<double>(ended.samples);
    const double kept = memory / (memory + samples);
    samples_ = samples_ * kept + samples;
    bytes_ = bytes_ * kept + static_cast<double>(ended.bytes);
    spent_ns_ = spent_ns_ * kept + since(ended.sampling_ns, last_sampling_ns_);
    const double budget_ns = std::max(since(ended.processor_ns, last_processor_ns_) * share,
                                      since(ended.passed_ns, last_passed_ns_) * share_of_passing);
    budget_ns_ = budget_ns_ * kept + budget_ns;
    last_sampling_ns_ = ended.sampling_ns;
    last_processor_ns_ = ended.processor_ns;
    last_passed_ns_ = ended.passed_ns;
    const double wanted = bytes_ * (spent_ns_ / std::max(samples_, 1.0)) / std::max(budget_ns_, share);
    return std::clamp(static_cast<std::uint64_t>(std::min(wanted, static_cast<double>(coarsest))), finest, coarsest);
  }

 private:
  static constexpr double since(std::uint64_t now, std::uint64_t then) noexcept {
    return now > then ? static_cast<double>(now - then) : 0;
  }

  double samples_ = 0, bytes_ = 0, spent_ns_ = 0, budget_ns_ = 0;
  std::uint64_t last_sampling_ns_ = 0, last_processor_ns_ = 0, last_passed_ns_ = 0;
};

}  // namespace heapwright::probe
