// The formulas are in the header.
#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace heapwright::tool {

double median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// P(|T| <= t) for Student's t with so many degrees of freedom: the finite sums of Abramowitz and
/// Stegun, 26.7.3 and 26.7.4.
static double within(double t, unsigned degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle), square = cosine * cosine;
  const bool is_odd = degrees % 2 == 1;
  double term = is_odd ? cosine : 1, sum = 0;
  for (unsigned i = is_odd ? 1 : 0; i + 2 <= degrees; i += 2) {
    sum += term;
    term *= square * (i + 1) / (i + 2);
  }
  return is_odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

double student_t(unsigned degrees, double doubt) {
  double low = 0, high = 1;
  while (1 - within(high, degrees) > doubt) high *= 2;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (1 - within(middle, degrees) > doubt ? low : high) = middle;
  }
  return high;
}

/// How far the interval reaches to either side of the mean.
static double reach_of(double deviation, unsigned rounds, double doubt = 0.05) {
  return student_t(rounds - 1, doubt) * deviation / std::sqrt(static_cast<double>(rounds));
}

std::optional<ratio_estimate> paired_ratio(std::span<const double> values, std::span<const double> reference,
                                           double doubt) {
  const std::size_t rounds = std::min(values.size(), reference.size());
  if (rounds < 2) return std::nullopt;
  std::vector<double> logs;
  double mean = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    if (!(values[i] > 0) || !(reference[i] > 0)) return std::nullopt;
    logs.push_back(std::log(values[i] / reference[i]));
    mean += logs.back() / static_cast<double>(rounds);
  }
  double squares = 0;
  for (const double d : logs) squares += (d - mean) * (d - mean);
  const auto n = static_cast<double>(rounds);
  const double deviation = std::sqrt(squares / (n - 1));
  const double reach = reach_of(deviation, static_cast<unsigned>(rounds), doubt);
  return ratio_estimate{std::exp(mean), std::exp(mean - reach), std::exp(mean + reach), deviation};
}

/// To the two digits that are shown.
static double rounded(double bound) { return std::round(bound * 100) / 100; }

std::string shown_bound(double value) {
  return value < 10 ? fmt::format("{:.2f}", rounded(value)) : fmt::format("{:.{}f}", value, value < 100 ? 1 : 0);
}

ratio_verdict ratio_estimate::judge(double tolerance) const noexcept {
  const double from = rounded(low), to = rounded(high);
  if (from >= rounded(1 / (1 + tolerance)) && to <= rounded(1 + tolerance)) return ratio_verdict::same;
  if (to < 1) return ratio_verdict::less;
  return from > 1 ? ratio_verdict::more : ratio_verdict::unclear;
}

std::optional<unsigned> ratio_estimate::rounds_to_decide(double tolerance, unsigned limit) const {
  for (unsigned rounds = 2; rounds <= limit; ++rounds) {
    const double factor = std::exp(reach_of(deviation, rounds));
    if (ratio_estimate{ratio, ratio / factor, ratio * factor, deviation}.judge(tolerance) != ratio_verdict::unclear)
      return rounds;
  }
  return std::nullopt;
}

std::optional<median_estimate> paired_difference(std::span<const double> values, std::span<const double> reference) {
  const std::size_t rounds = std::min(values.size(), reference.size());
  if (rounds < 2) return std::nullopt;
  std::vector<double> all;
  for (std::size_t i = 0; i < rounds; ++i) all.push_back(values[i] - reference[i]);
  std::ranges::sort(all);
  // How many of the differences are below the true median is as with a coin: so many ends can be
  // left out on both sides.
  constexpr double most_doubt = 0.1;
  double ways = 1;
  double doubt = 2 * std::pow(0.5, static_cast<double>(rounds));
  std::size_t left_out = 0;
  for (double at_least = doubt;; ++left_out) {
    ways *= static_cast<double>(rounds - left_out) / static_cast<double>(left_out + 1);
    at_least += doubt * ways;
    if (at_least > most_doubt || 2 * (left_out + 1) >= rounds) break;
  }
  return median_estimate{median(all), all[left_out], all[rounds - 1 - left_out]};
}

std::vector<unsigned> order_of_round(unsigned round, unsigned contestants) {
  std::vector<unsigned> order(contestants);
  for (unsigned place = 0; place < contestants; ++place) {
    // 0, 1, n-1, 2, n-2, ...: the steps between neighbours are all different, so shifting covers
    // every pair once.
    const unsigned zigzag = place % 2 == 1 ? (place + 1) / 2 : contestants - place / 2;
    order[place] = (zigzag + round) % contestants;
  }
  // Of an odd number, the pairs one half of the steps leaves out come with the order reversed.
  if (contestants % 2 == 1 && round / contestants % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace heapwright::tool
