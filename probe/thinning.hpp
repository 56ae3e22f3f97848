// Which live samples to drop when there are too many.
//
// Live samples take memory, and time when blocks beside them are freed (sample_filter). A program
// with a large, stable heap has many, of which it needs few: so most of those of its largest stacks
// are dropped, and the others stand for more. How often new blocks are sampled does not depend on
// it.
//
// A sample that is thinned gets a coarser interval, by which it would have been drawn with at most
// 0.6 of the probability that it was drawn with. It is kept with just that probability, by a random
// number of its own: then it is what a sampler of the coarser interval would have found, and has
// the weight of that (sample_weight.hpp). So estimates stay without bias.
//
// Thinned are samples of stacks with at least half as many as the average stack, and of these the
// ones that stand for less than twice their stack's mean. A stack with few samples keeps all.
//
//   samples in stacks below half of the average   < 1/2 of all
//   samples of twice their stack's mean or more  <= 1/2 of the stack's
//   so thinning drops                            >= 0.4 * 1/4 of all, on average
#pragma once

#include <array>
#include <cstdint>

#include <heapwright/core/hash.hpp>

#include "../segment/sample_weight.hpp"

namespace heapwright::probe {

/// Counts of live samples by stack, for one pass of thinning. Two stacks may share a count: then a
/// stack with few samples may be thinned too, which costs accuracy but no bias. `salt` differs from
/// pass to pass, so that it is seldom the same stack.
class live_sample_counts {
 public:
  void begin(std::uint64_t salt) noexcept {
    entries_ = {};
    salt_ = salt | 1;
    samples_ = stacks_ = 0;
  }

  void add(std::uint32_t stack, std::uint64_t bytes, segment::sampling_interval interval) noexcept {
    entry& e = entries_[index_of(stack)];
    if (e.samples++ == 0) ++stacks_;
    e.bytes += stands_for(bytes, interval);
    ++samples_;
  }

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }

  [[nodiscard]] bool is_thinned(std::uint32_t stack, std::uint64_t bytes,
                                segment::sampling_interval interval) const noexcept {
    const entry& e = entries_[index_of(stack)];
    return std::uint64_t{e.samples} * stacks_ * 2 >= samples_ &&
           stands_for(bytes, interval) * static_cast<float>(e.samples) < 2 * e.bytes;
  }

 private:
  static constexpr unsigned bits = 11;

  struct entry {
    std::uint32_t samples = 0;
    float bytes = 0;
  };

  /// size / p, to a factor of two at most: without the exponential.
  [[nodiscard]] static float stands_for(std::uint64_t bytes, segment::sampling_interval interval) noexcept {
    return static_cast<float>(bytes > interval.bytes() ? bytes : interval.bytes());
  }

  [[nodiscard]] std::size_t index_of(std::uint32_t stack) const noexcept {
    return stack * (fibonacci_hash(salt_) | 1) >> (64 - bits);
  }

  std::array<entry, std::size_t{1} << bits> entries_{};
  std::uint64_t salt_ = 1, samples_ = 0, stacks_ = 0;
};

struct thinned_sample {
  segment::sampling_interval interval;  ///< coarser than it was
  double kept;                          ///< the probability to keep it
};

/// How a sampled block is thinned. `bytes` is not 0.
[[nodiscard]] constexpr thinned_sample thinned(std::uint64_t bytes, segment::sampling_interval interval) noexcept {
  constexpr double most_kept = 0.6;
  const auto size = static_cast<double>(bytes);
  const auto drawn_with = [size](segment::sampling_interval i) {
    return i.is_one() ? 1 : segment::one_minus_exp_of_minus(size / static_cast<double>(i.bytes()));
  };
  const double before = drawn_with(interval);
  segment::sampling_interval coarser = interval;
  double kept = 1;
  while (kept > most_kept) {
    coarser = segment::sampling_interval(coarser.bytes() * 2);
    kept = drawn_with(coarser) / before;
  }
  return {coarser, kept};
}

}  // namespace heapwright::probe
