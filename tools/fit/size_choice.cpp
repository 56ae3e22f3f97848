#include "size_choice.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <ranges>
#include <set>

#include <heapwright/heap/recipe.hpp>

namespace heapwright::tool {
namespace {

constexpr std::uint64_t grain = size_class_plan::smallest_step;
constexpr std::uint64_t page = 4 * KiB, line = 64;                   ///< of the heap, and of the processor's cache
constexpr std::uint64_t longest = default_recipe.spans.largest_cut;  ///< that `exact` may end with
constexpr std::size_t grains = longest / grain;

/// Bytes that a block of a class takes: with the line by which longer blocks are longer, and its
/// part of what is left over at the end of a long span.
constexpr std::uint64_t taken(std::uint64_t size, const span_length& span) {
  const std::uint64_t block = size < 2 * page ? size : size + line;
  std::uint64_t bytes = align_up(std::max<std::uint64_t>(span.min_bytes, span.min_blocks * block), page);
  while (bytes % block > bytes / span.max_waste_divisor) bytes += page;
  return block + std::min<std::uint64_t>(bytes % block, page) / (bytes / block);
}

/// For each size, in grains.
using taken_bytes = std::array<std::uint64_t, grains + 1>;

consteval taken_bytes taken_of_all(const span_length& span) {
  taken_bytes all{};
  for (std::size_t i = 1; i <= grains; ++i) all[i] = taken(i * grain, span);
  return all;
}

constexpr taken_bytes by_default = taken_of_all(default_recipe.spans.last);
constexpr taken_bytes in_chosen_spans = taken_of_all(size_choice::spans);

/// Of a class that is used at all: half of a span of the shortest length, for each of so many
/// threads. They share spans of longer blocks.
constexpr std::uint64_t loss_of_class(std::uint64_t size, std::uint64_t threads) {
  const span_length& spans =
      size <= default_recipe.spans.small ? default_recipe.spans.first_of_small : default_recipe.spans.first;
  return std::max<std::uint64_t>(spans.min_bytes, spans.min_blocks * size) / 2 * (size < page ? threads : 1);
}

std::uint64_t at_peak(const size_use& u) { return u.live_at_peak; }

/// Blocks that live at another time count a quarter, and of all that are allocated one in a
/// thousand: another input may have its peak there, or keep what this one frees at once.
std::uint64_t at_peak_and_elsewhere(const size_use& u) {
  return u.live_at_peak + (std::max(u.live_at_most, u.live_at_peak) - u.live_at_peak) / 4 + u.allocations / 1000;
}

/// What is asked for, by size in grains: sums of all sizes up to there, and the threads of each.
class demand {
 public:
  demand(std::span<const size_use> uses, std::uint64_t threads_at_once, std::uint64_t (*count)(const size_use&))
      : threads_at_once_(threads_at_once) {
    for (const size_use& u : uses) {
      if (u.size > longest) continue;
      const std::size_t at = std::max<std::size_t>(divide_up(u.size, grain), 1);
      blocks_[at] += count(u);
      bytes_[at] += count(u) * u.size;
      threads_[at] |= u.threads;
    }
    for (std::size_t i = 1; i <= grains; ++i) {
      blocks_[i] += blocks_[i - 1];
      bytes_[i] += bytes_[i - 1];
    }
  }

  /// What a class of `to` grains loses that has all sizes above `from`.
  [[nodiscard]] std::uint64_t loss(std::size_t from, std::size_t to, const taken_bytes& taken) const {
    std::uint64_t threads = 0;
    for (std::size_t i = from + 1; i <= to; ++i) threads |= threads_[i];
    return loss(from, to, taken, threads);
  }

  /// For each `from` below `to`.
  void losses(std::size_t to, const taken_bytes& taken, std::span<std::uint64_t> into) const {
    std::uint64_t threads = 0;
    for (std::size_t from = to; from-- > 0;) {
      threads |= threads_[from + 1];
      into[from] = loss(from, to, taken, threads);
    }
  }

 private:
  [[nodiscard]] std::uint64_t loss(std::size_t from, std::size_t to, const taken_bytes& taken,
                                   std::uint64_t threads) const {
    if (threads == 0) return 0;
    const std::uint64_t at_once = std::min<std::uint64_t>(std::popcount(threads), threads_at_once_);
    return (blocks_[to] - blocks_[from]) * taken[to] - (bytes_[to] - bytes_[from]) + loss_of_class(to * grain, at_once);
  }

  std::array<std::uint64_t, grains + 1> blocks_{}, bytes_{}, threads_{};
  std::uint64_t threads_at_once_;
};

/// 0, and where each of the default's classes ends.
std::vector<std::size_t> ends_of_steps() {
  std::vector<std::size_t> ends{0};
  while (ends.back() < grains)
    ends.push_back(default_recipe.classes.size(default_recipe.classes.index((ends.back() + 1) * grain)) / grain);
  return ends;
}

/// Of classes that end there.
std::uint64_t loss_of(const demand& all, std::span<const std::size_t> ends, const taken_bytes& taken) {
  std::uint64_t loss = 0;
  for (std::size_t i = 1; i < ends.size(); ++i) loss += all.loss(ends[i - 1], ends[i], taken);
  return loss;
}

/// The least loss of all choices of so many sizes that end there; and how each of them begins.
class best_lists {
 public:
  explicit best_lists(const demand& all) {
    for (auto& row : least_) row.fill(none);
    least_[0][0] = 0;
    std::vector<std::uint64_t> loss_from(grains);
    for (std::size_t to = 1; to <= grains; ++to) {
      all.losses(to, in_chosen_spans, loss_from);
      for (std::size_t count = 1; count <= std::min(size_list::most, to); ++count) {
        for (std::size_t from = count - 1; from < to; ++from) {
          if (least_[count - 1][from] == none) continue;
          const std::uint64_t loss = least_[count - 1][from] + loss_from[from];
          if (loss >= least_[count][to]) continue;
          least_[count][to] = loss;
          before_[count][to] = static_cast<std::uint16_t>(from);
        }
      }
    }
  }

  /// The fewest sizes of those that lose least, of all lists that end with `last` grains.
  [[nodiscard]] std::size_t best_count(std::size_t last) const {
    std::size_t best = 1;
    for (std::size_t count = 2; count <= size_list::most; ++count)
      if (least_[count][last] < least_[best][last]) best = count;
    return best;
  }

  [[nodiscard]] std::uint64_t loss(std::size_t count, std::size_t last) const { return least_[count][last]; }

  /// 0, and where each class of the list ends.
  [[nodiscard]] std::vector<std::size_t> ends(std::size_t count, std::size_t last) const {
    std::vector<std::size_t> all{last};
    for (; count > 0; last = before_[count--][last]) all.push_back(before_[count][last]);
    std::ranges::reverse(all);
    return all;
  }

 private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  std::array<std::array<std::uint64_t, grains + 1>, size_list::most + 1> least_;
  std::array<std::array<std::uint16_t, grains + 1>, size_list::most + 1> before_;
};

}  // namespace

size_choice choose_sizes(std::span<const size_use> uses, std::uint64_t threads_at_once) {
  const auto all = std::make_unique<demand>(uses, threads_at_once, at_peak_and_elsewhere);
  const auto lists = std::make_unique<best_lists>(*all);
  const std::vector<std::size_t> steps = ends_of_steps();
  std::vector<std::size_t> best;
  std::uint64_t least = loss_of(*all, steps, by_default);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::span behind = std::span(steps).subspan(i);
    const std::size_t count = lists->best_count(steps[i]);
    const std::uint64_t loss = lists->loss(count, steps[i]) + loss_of(*all, behind, in_chosen_spans);
    if (loss >= least) continue;
    least = loss;
    best = lists->ends(count, steps[i]);
  }
  const auto then = std::make_unique<demand>(uses, threads_at_once, at_peak);
  size_choice chosen;
  chosen.loss = chosen.loss_by_default = loss_of(*then, steps, by_default);
  if (best.empty()) return chosen;
  for (const std::size_t end : best | std::views::drop(1)) chosen.sizes.push_back(end * grain);
  const auto behind = std::ranges::find(steps, best.back());
  chosen.loss = loss_of(*then, best, in_chosen_spans) + loss_of(*then, {behind, steps.end()}, in_chosen_spans);
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
