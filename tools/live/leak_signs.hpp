// Does a call site leak? Judged by when its live blocks were allocated.
//
// A site that leaks at a steady rate has live blocks of all ages, evenly. One whose blocks are
// freed in time has young ones, and one that fills a cache and stops has old ones. The measure is
// the largest distance between the share of live bytes allocated by a moment and the share of time
// passed by then (Kolmogorov and Smirnov's statistic, here of weighted samples).
//
// A cache that is full and renewed slowly has blocks of all ages too: but as much as it allocates
// is freed of what it had before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "segment.hpp"

namespace heapwright::tool {

/// A live sampled block.
struct aged_block {
  std::uint64_t at_ns = 0;  ///< when it was allocated
  double bytes = 0;         ///< that it stands for
  double variance = 0;      ///< of `bytes`
};

/// What of a site is freed.
struct freed_blocks {
  std::array<std::uint64_t, segment::lifetime_buckets> bytes_by_lifetime{};

  /// The longest that all but a hundredth of them lived, to a factor of 4; 0 if there are none.
  [[nodiscard]] double usual_life_seconds() const noexcept;
  /// Of those that lived for `least` seconds and more, where none can have lived longer than
  /// `most`. An estimate: within a bucket lifetimes are taken as even.
  [[nodiscard]] double bytes_that_lived(double least, double most) const noexcept;
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
  double overdue_bytes = 0;     ///< live for longer than usual_life_seconds() of the freed ones
};

/// Precondition: time.begin_ns <= time.end_ns. O(n log n).
[[nodiscard]] leak_signs signs_of_leak(std::vector<aged_block> live, const freed_blocks& freed, const time_span& time);

}  // namespace heapwright::tool
