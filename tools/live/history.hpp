// What the server has seen so far, in bounded memory: an hour at the full rate, then ever fewer
// points of what is older, up to a month.
//
// A coarser tier keeps, of each stretch of time, the point at which most bytes were live: so every
// point ever shown was one real moment, and a peak is not lost by growing old. Totals only ever
// grow, so a rate between any two points is right whatever lay between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace heapwright::tool {

struct history_point {
  std::uint64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  std::int64_t live = 0;    ///< bytes; negative where counting began late
  std::uint64_t rss = 0;    ///< 0: not known
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
};

class history {
 public:
  void add(const history_point& point);

  /// Points after `since_ns`, the oldest first, no more than `most` of them, chosen as a coarser
  /// tier would.
  [[nodiscard]] std::vector<history_point> points(std::uint64_t since_ns, std::size_t most) const;

  [[nodiscard]] std::size_t size() const noexcept;

 private:
  struct tier {
    std::uint64_t spacing_ns;  ///< one point in each stretch of this length
    std::size_t most;
    std::deque<history_point> points;
  };
  void add_to(std::size_t t, const history_point& point);

  static constexpr std::uint64_t second = 1'000'000'000;
  std::array<tier, 3> tiers_{tier{second / 10, 36'000, {}}, tier{10 * second, 8'640, {}},
                             tier{300 * second, 8'640, {}}};
};

}  // namespace heapwright::tool
