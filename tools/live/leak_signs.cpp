#include "leak_signs.hpp"

#include <algorithm>
#include <cmath>

namespace heapwright::tool {
namespace {

/// What a program allocates in this share of the time is how it starts: kept blocks of then are no
/// leak.
constexpr double start = 1.0 / leak_signs::slots;

/// Fewer samples say nothing, by their weights: 100 of which one stands for nearly all bytes are
/// one.
constexpr double fewest_samples = 8;

/// How far from even a leak may be: load comes and goes.
constexpr double most_uneven = 0.25;

/// A site that keeps less than this of what it allocates is renewed, and does not grow.
constexpr double least_kept = 0.5;

using moments_and_bytes = std::vector<std::pair<double, double>>;

/// How many samples of equal weight say as much.
double effective_samples(const moments_and_bytes& at_and_bytes) {
  double all = 0, squares = 0;
  for (const auto& [at, bytes] : at_and_bytes) {
    all += bytes;
    squares += bytes * bytes;
  }
  return squares > 0 ? all * all / squares : 0;
}

/// Moments are shares of the time, in order. True if the bytes are as even as those of a leak.
/// Precondition: there are some.
bool is_even(const moments_and_bytes& at_and_bytes, double samples) {
  double all = 0, sum = 0, distance = 0;
  for (const auto& [at, bytes] : at_and_bytes) all += bytes;
  for (const auto& [at, bytes] : at_and_bytes) {
    const double passed = (at - start) / (1 - start);
    distance = std::max(distance, std::abs(sum / all - passed));
    sum += bytes;
    distance = std::max(distance, std::abs(sum / all - passed));
  }
  // 1.36 / sqrt(n): what 95 of 100 sets of n even samples do not exceed.
  return distance <= std::max(most_uneven, 1.36 / std::sqrt(samples));
}

/// In seconds: where a bucket of lifetimes ends, which is where the next one begins.
double end_of_bucket(unsigned b) noexcept { return std::ldexp(1e-6, static_cast<int>(2 * b)); }

/// Whether what was allocated in the second half of the time, and stays, took the place of older
/// blocks. What had lived for half of the time when it was freed was freed in its second half.
bool is_renewed(const leak_signs& signs, const freed_blocks& freed, double seconds) noexcept {
  const double half = seconds / 2, stays = signs.bytes_per_second * half;
  return stays - freed.bytes_that_lived(half, seconds) < least_kept * stays;
}

}  // namespace

double freed_blocks::usual_life_seconds() const noexcept {
  double all = 0, sum = 0;
  for (const std::uint64_t bytes : bytes_by_lifetime) all += static_cast<double>(bytes);
  if (all <= 0) return 0;
  unsigned b = 0;
  for (; b + 1 < bytes_by_lifetime.size(); ++b) {
    sum += static_cast<double>(bytes_by_lifetime[b]);
    if (sum >= all * 0.99) break;
  }
  return end_of_bucket(b);
}

double freed_blocks::bytes_that_lived(double least, double most) const noexcept {
  double lived = 0;
  for (unsigned b = 0; b < bytes_by_lifetime.size(); ++b) {
    const double begin = b == 0 ? 0 : end_of_bucket(b - 1);
    const double end = b + 1 == bytes_by_lifetime.size() ? most : std::min(end_of_bucket(b), most);
    if (end > least)
      lived += static_cast<double>(bytes_by_lifetime[b]) * (end - std::max(begin, least)) / (end - begin);
  }
  return lived;
}

leak_signs signs_of_leak(std::vector<aged_block> live, const freed_blocks& freed, const time_span& time) {
  const double usual_life = freed.usual_life_seconds();
  leak_signs result;
  result.samples = live.size();
  std::ranges::sort(live, {}, &aged_block::at_ns);
  const double all_ns = static_cast<double>(time.end_ns - time.begin_ns) + 1;
  moments_and_bytes after_start;
  for (const aged_block& block : live) {
    const std::uint64_t at_ns = std::clamp(block.at_ns, time.begin_ns, time.end_ns);
    const double at = static_cast<double>(at_ns - time.begin_ns) / all_ns;
    result.bytes_by_time[static_cast<std::size_t>(at * leak_signs::slots)] += block.bytes;
    if (at >= start) after_start.emplace_back(at, block.bytes);
    if (const double half = time.seconds() / 2; at >= 0.5 && half > 0) {
      result.bytes_per_second += block.bytes / half;
      result.variance += block.variance / (half * half);
    }
    if (static_cast<double>(time.end_ns - at_ns) / 1e9 > usual_life) result.overdue_bytes += block.bytes;
  }
  const double samples = effective_samples(after_start);
  result.has_enough_samples = samples >= fewest_samples;
  result.is_growing =
      result.has_enough_samples && is_even(after_start, samples) && !is_renewed(result, freed, time.seconds());
  return result;
}

}  // namespace heapwright::tool
