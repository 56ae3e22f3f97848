// When to ask the kernel for PSS, anonymous and swapped bytes again (smaps_rollup).
//
// RSS is cheap and fresh at each look. The others make the process wait while the kernel walks all
// its pages. So they are asked for again after ten seconds, where somebody looks; and earlier, or
// where nobody looks, when RSS has moved so far that they would say something else beside it. That
// may take a hundredth of the time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heapwright::tool {

/// Times are of one clock, in nanoseconds.
class detailed_looks {
 public:
  static constexpr std::uint64_t age = 10'000'000'000;
  static constexpr std::uint64_t least_move = 4 << 20;

  void looked(std::uint64_t at, std::uint64_t took, std::uint64_t rss) noexcept {
    last_at_ = at;
    last_took_ = took;
    last_rss_ = rss;
  }

  [[nodiscard]] bool are_old(std::uint64_t now) const noexcept { return now >= last_at_ + age; }

  [[nodiscard]] bool are_due(std::uint64_t now, std::uint64_t rss, bool somebody_looks) const noexcept {
    if (somebody_looks && are_old(now)) return true;
    const std::uint64_t moved = std::max(rss, last_rss_) - std::min(rss, last_rss_);
    return moved > std::max(last_rss_ / 8, least_move) && now >= last_at_ + 100 * last_took_;
  }

 private:
  std::uint64_t last_at_ = 0, last_took_ = 0, last_rss_ = 0;
};

}  // namespace heapwright::tool
