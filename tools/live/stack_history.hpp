// What stacks have counted over time: moments at even distances from the beginning on, in bounded
// memory.
//
// At first a moment is kept each second. When there are as many figures as may be, every second
// moment is dropped, and from then on they are kept half as often. So the whole time is there, the
// coarser the longer it is and the more stacks there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "baseline.hpp"

namespace heapwright::tool {

class stack_history {
 public:
  static constexpr std::size_t most_figures = 100'000, least_moments = 8, most_moments = 240;

  /// Reading the stacks may take a hundredth of the time. `calls` of malloc and free by the
  /// process: where there were none there is nothing new.
  [[nodiscard]] bool is_due(std::uint64_t now_ns, std::uint64_t calls) const noexcept;

  /// `took_ns`: to read the stacks.
  void add(std::shared_ptr<const baseline> moment, std::uint64_t calls, std::uint64_t took_ns);

  /// The oldest first.
  [[nodiscard]] const std::vector<std::shared_ptr<const baseline>>& moments() const noexcept { return moments_; }

  /// Whether the moment is not before the first that is kept.
  [[nodiscard]] bool covers(std::uint64_t at_ns) const { return !moments_.empty() && moments_.front()->at_ns <= at_ns; }

  /// The one that is nearest in time; null: there is none.
  [[nodiscard]] std::shared_ptr<const baseline> nearest(std::uint64_t at_ns) const;

 private:
  void drop_every_second();

  std::vector<std::shared_ptr<const baseline>> moments_;
  std::uint64_t spacing_ns_ = 1'000'000'000, last_took_ns_ = 0, last_calls_ = 0;
};

}  // namespace heapwright::tool
