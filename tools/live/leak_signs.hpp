// Does a call site leak? Judged by when its live blocks were allocated.
//
// A site that leaks at a steady rate has live blocks of all ages, evenly. One whose blocks are
// freed in time has young ones, and one that fills a cache and stops has old ones. The measure is
// the largest distance between the share of live bytes allocated by a moment and the share of time
// passed by then (Kolmogorov and Smirnov's statistic, here of weighted samples).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heapwright::tool {

/// A live sampled block.
struct aged_block {
  std::uint64_t at_ns = 0;  ///< when it was allocated
  double bytes = 0;         ///< that it stands for
  double variance = 0;      ///< of `bytes`
};

/// The time that a program was watched.
struct time_span {
  std::uint64_t begin_ns = 0, end_ns = 0;

  [[nodiscard]] double seconds() const noexcept { return static_cast<double>(end_ns - begin_ns) / 1e9; }
};

struct leak_signs {
  static constexpr std::size_t slots = 24;

  std::array<double, slots> bytes_by_time{};  ///< of live blocks, by when they were allocated
  std::size_t samples = 0;                    ///< live ones
  bool has_enough_samples = false;            ///< to be judged
  bool is_growing = false;
  double bytes_per_second = 0;  ///< allocated in the second half of the time, and live
  double variance = 0;          ///< of bytes_per_second, in (bytes/s)^2
  double overdue_bytes = 0;     ///< live for longer than `usual_life_seconds`
};

/// `usual_life_seconds`: what nearly all freed blocks of the site lived at most; 0: none was freed.
/// Precondition: time.begin_ns <= time.end_ns. O(n log n).
[[nodiscard]] leak_signs signs_of_leak(std::vector<aged_block> live, double usual_life_seconds, const time_span& time);

}  // namespace heapwright::tool
