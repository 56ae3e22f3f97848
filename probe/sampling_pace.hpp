// How often to sample: the interval that holds the time spent on samples to a share of the processor's time.
//
// A policy without clocks: observer.cpp tells it numbers at the end of each window of samples.
//
// Cost        Time spent on samples is proportional to 1 / interval. A window that cost c times its
//             budget asks for c times the interval.
// Few samples A window of n samples would, with other luck, have had n + 2 sqrt(n). The interval only
//             becomes finer than now where that many would fit into the budget too.
// Live bytes  Each live sample takes memory, and costs time when its neighbours are freed. So the
//             interval is at least live bytes / most_live_samples.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heapwright::probe {

class sampling_pace {
 public:
  static constexpr std::uint64_t finest = 4 * 1024, coarsest = 16 * 1024 * 1024;

  /// Parts per thousand of the processor's time that the probe may measure as spent on samples. What it does not
  /// measure is as much again: samples that are freed, and what samples push out of the processor's caches.
  static constexpr std::uint64_t budget = 5;

  static constexpr std::uint64_t most_live_samples = 4096;

  /// A window ends with its last sample: the 64th, or the first one after 100 ms.
  static constexpr std::uint64_t window_samples = 64, window_ns = 100'000'000;

  /// Sums since the process began, but for `live_bytes`.
  struct reading {
    std::uint64_t samples = 0;       ///< in this window
    std::uint64_t sampling_ns = 0;   ///< spent on samples, by all threads
    std::uint64_t processor_ns = 0;  ///< that the process has had
    std::uint64_t live_bytes = 0;    ///< now
  };

  /// The interval for the next window, from that of the one which ends. One thread at a time.
  [[nodiscard]] constexpr std::uint64_t next(std::uint64_t interval, const reading& now) noexcept {
    const double spent = since(now.sampling_ns, sampling_ns_), had = since(now.processor_ns, processor_ns_);
    sampling_ns_ = now.sampling_ns;
    processor_ns_ = now.processor_ns;
    constexpr double most_at_once = 16;  // the first samples read tables: they say little of the next ones
    const double share = std::min(spent / (std::max(had, 1.0) * (static_cast<double>(budget) / 1000)), most_at_once);
    const double at_worst = share * with_other_luck(static_cast<double>(std::max<std::uint64_t>(now.samples, 1)));
    const double factor = share > 1 ? share : std::min(at_worst, 1.0);
    const auto by_cost = static_cast<std::uint64_t>(static_cast<double>(interval) * factor);
    const std::uint64_t least = std::clamp(now.live_bytes / most_live_samples, finest, coarsest);
    return std::clamp(by_cost, least, coarsest);
  }

 private:
  static constexpr double since(std::uint64_t now, std::uint64_t then) noexcept {
    return now > then ? static_cast<double>(now - then) : 0;
  }

  /// (n + 2 sqrt(n)) / n
  static constexpr double with_other_luck(double n) noexcept {
    double root = n;
    for (int i = 0; i < 8; ++i) root = (root + n / root) / 2;  // without libm, which the program may not have
    return 1 + 2 / root;
  }

  std::uint64_t sampling_ns_ = 0, processor_ns_ = 0;
};

}  // namespace heapwright::probe
