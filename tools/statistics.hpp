// The mathematics of a comparison, all of it.
//
// Round i gives one value a_i under an allocator and one value g_i under glibc, taken minutes apart
// at most. A machine drifts (heat, neighbours), and what drifts hits both, so the ratio is
// estimated within rounds: d_i = ln(a_i / g_i). With mean m and standard deviation s of d_1 ...
// d_n, the ratio is exp(m), the geometric mean of the rounds' ratios, and
//   exp(m - t s / sqrt(n)) ... exp(m + t s / sqrt(n))
// holds the true ratio with 95 % confidence if the d_i are about normal; t is the 97.5 % quantile
// of Student's t with n - 1 degrees of freedom. Logarithms make it symmetric: swapping the two
// programs gives the reciprocals. The medians shown beside it are the plain medians over the
// rounds.
//
// With a tolerance t (3 % is 0.03), an interval says one of four things:
//   same      it lies in 1/(1 + t) ... 1 + t: a difference, if there is one, is too small to matter
//   less      it ends below 1
//   more      it begins above 1
//   unclear   it holds 1 and reaches further than t: there may be a difference that matters, or
//             none
// Both ends are taken as they are shown, with two digits, so that a table does not contradict
// itself: of two intervals that are shown as 0.97-1.02, both are the same, or neither.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heapwright::tool {

/// The middle value, or the mean of the two middle ones. `values` must not be empty.
double median(std::vector<double> values);

/// What a two-sided interval needs of Student's t, which it misses with the probability `doubt`:
/// 0.05 for one of 95 %. `degrees` must be positive, `doubt` within 0 ... 1.
double student_t(unsigned degrees, double doubt);

enum class ratio_verdict { same, less, more, unclear };

struct ratio_estimate {
  double ratio;
  double low;
  double high;
  double deviation;  ///< s

  [[nodiscard]] ratio_verdict judge(double tolerance) const noexcept;

  /// The fewest rounds, at least two, that would not be unclear if ratio and deviation stayed as
  /// they are. Nothing for more than `limit`. O(limit).
  [[nodiscard]] std::optional<unsigned> rounds_to_decide(double tolerance, unsigned limit) const;
};

/// An end of an interval as it is shown: two digits, fewer from 10 on.
[[nodiscard]] std::string shown_bound(double value);

/// Nothing where no interval exists: fewer than two rounds, or a value that is not positive.
/// `doubt`: that the interval misses the true ratio.
std::optional<ratio_estimate> paired_ratio(std::span<const double> values, std::span<const double> reference,
                                           double doubt = 0.05);

/// A median, and an interval that holds the true one with 90 % confidence or more, from five rounds
/// on: whatever the noise is like. The least and the most are its ends where there are few rounds.
struct median_estimate {
  double median, low, high;
};

/// Of the differences within rounds. Nothing for fewer than two rounds.
std::optional<median_estimate> paired_difference(std::span<const double> values, std::span<const double> reference);

/// The order of the contestants in a round: a Williams design, in which over n rounds (2n if n is
/// odd) each contestant stands equally often in each place, and follows each other one equally
/// often.
std::vector<unsigned> order_of_round(unsigned round, unsigned contestants);

}  // namespace heapwright::tool
