#include "size_choice.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include <heapwright/heap/recipe.hpp>

namespace heapwright::tool {
namespace {

constexpr std::uint64_t grain = size_class_plan::smallest_step;
constexpr std::uint64_t longest = 4096;  ///< that `exact` may end with
constexpr std::size_t grains = longest / grain;

/// Of a class that is used at all: half of a span of the shortest length.
constexpr std::uint64_t loss_of_class(std::uint64_t size) {
  const span_length& spans =
      size <= default_recipe.spans.small ? default_recipe.spans.first_of_small : default_recipe.spans.first;
  return std::max<std::uint64_t>(spans.min_bytes, spans.min_blocks * size) / 2;
}

/// Sums over sizes, in grains: of those that round to i * grain at most.
struct sums {
  std::array<std::uint64_t, grains + 1> blocks{}, bytes{}, allocations{};

  explicit sums(std::span<const size_use> uses) {
    for (const size_use& u : uses) {
      if (u.size > longest) continue;
      const std::size_t at = std::max<std::size_t>(divide_up(u.size, grain), 1);
      blocks[at] += u.live_at_peak;
      bytes[at] += u.live_at_peak * u.size;
      allocations[at] += u.allocations;
    }
    for (std::size_t i = 1; i <= grains; ++i) {
      blocks[i] += blocks[i - 1];
      bytes[i] += bytes[i - 1];
      allocations[i] += allocations[i - 1];
    }
  }

  /// What a class of `to` grains loses that has all sizes above `from`.
  [[nodiscard]] std::uint64_t loss(std::size_t from, std::size_t to) const {
    if (allocations[to] == allocations[from]) return 0;
    return (blocks[to] - blocks[from]) * to * grain - (bytes[to] - bytes[from]) + loss_of_class(to * grain);
  }
};

/// Of the default's classes, between two of its sizes.
std::uint64_t loss_of_steps(const sums& all, std::size_t from, std::size_t to) {
  std::uint64_t loss = 0;
  for (std::size_t end = from; end < to;) {
    const std::size_t begin = end;
    end = default_recipe.classes.size(default_recipe.classes.index((begin + 1) * grain)) / grain;
    loss += all.loss(begin, end);
  }
  return loss;
}

/// The best sizes for a list that ends with `last` grains, and what they lose.
struct best_list {
  std::vector<std::uint64_t> sizes;
  std::uint64_t loss = std::numeric_limits<std::uint64_t>::max();
};

best_list best_that_ends_with(const sums& all, std::size_t last) {
  // least[k][i]: the least loss of all sizes up to i grains, with k classes that end there.
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const std::size_t most = std::min<std::size_t>(size_list::most, last);
  std::vector least(most + 1, std::vector(last + 1, none));
  std::vector before(most + 1, std::vector<std::size_t>(last + 1));
  least[0][0] = 0;
  for (std::size_t k = 1; k <= most; ++k) {
    for (std::size_t to = k; to <= last; ++to) {
      for (std::size_t from = k - 1; from < to; ++from) {
        if (least[k - 1][from] == none) continue;
        const std::uint64_t loss = least[k - 1][from] + all.loss(from, to);
        if (loss >= least[k][to]) continue;
        least[k][to] = loss;
        before[k][to] = from;
      }
    }
  }
  best_list best;
  for (std::size_t k = 1; k <= most; ++k) {
    if (least[k][last] >= best.loss) continue;
    best = {{}, least[k][last]};
    for (std::size_t at = last, left = k; left > 0; at = before[left--][at]) best.sizes.push_back(at * grain);
    std::ranges::reverse(best.sizes);
  }
  return best;
}

}  // namespace

size_choice choose_sizes(std::span<const size_use> uses) {
  const sums all(uses);
  size_choice chosen;
  chosen.loss = chosen.loss_by_default = loss_of_steps(all, 0, grains);
  for (std::size_t last = 128 / grain; last <= grains; last *= 2) {
    const best_list best = best_that_ends_with(all, last);
    const std::uint64_t loss = best.loss + loss_of_steps(all, last, grains);
    if (loss >= chosen.loss) continue;
    chosen.loss = loss;
    chosen.sizes = best.sizes;
  }
  return chosen;
}

std::uint64_t rounding_at_peak(std::span<const size_use> uses, std::uint64_t steps_per_doubling) {
  const size_class_plan plan{.steps_per_doubling = steps_per_doubling};
  std::uint64_t bytes = 0;
  for (const size_use& u : uses)
    if (u.size <= plan.largest) bytes += u.live_at_peak * (plan.size(plan.index(u.size)) - u.size);
  return bytes;
}

std::uint64_t classes_in_use(std::span<const size_use> uses) {
  std::set<unsigned> all;
  for (const size_use& u : uses)
    if (u.size <= default_recipe.classes.largest) all.insert(default_recipe.classes.index(u.size));
  return all.size();
}

}  // namespace heapwright::tool
