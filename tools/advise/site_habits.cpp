#include "site_habits.hpp"

#include <algorithm>

#include <tsl/robin_map.h>

#include "block_walk.hpp"

namespace heapwright::tool {
namespace {

/// Counts; blocks without a site count for the program alone.
class habit_counter {
 public:
  habit_counter(const block_walk& walk, std::size_t sites) : walk_(walk), sizes_(sites), now_(sites) {
    all.sites.resize(sites);
  }

  void begins(const walked_block& b, const living_blocks& living) {
    ++all.allocations;
    live_ += b.size;
    all.live_peak = std::max(all.live_peak, live_);
    if (b.site == 0) return;
    site_habits& s = all.sites[b.site - 1U];
    ++s.allocations;
    s.bytes += b.size;
    s.largest = std::max(s.largest, b.size);
    if (b.size <= site_habits::small) ++s.small_allocations;
    if (living.ever == 1) ++s.threads;
    count_size(s, sizes_[b.site - 1U], b.size);
    s.thread_live_bytes = std::max(s.thread_live_bytes, living.bytes);
    s.thread_live_blocks = std::max(s.thread_live_blocks, living.blocks);
    site_now& now = now_[b.site - 1U];
    now.live += b.size;
    now.gathered += b.size;
    s.live_peak = std::max(s.live_peak, now.live);
    s.gathered_peak = std::max(s.gathered_peak, now.gathered);
    ++s.live_at_end;
  }

  void ends(const walked_block& b, const living_blocks& living, block_end how, std::uint32_t thread, std::uint64_t) {
    live_ -= b.size;
    if (b.site == 0) return;
    site_habits& s = all.sites[b.site - 1U];
    site_now& now = now_[b.site - 1U];
    now.live -= b.size;
    --s.live_at_end;
    ++(how == block_end::resized ? s.resized : s.frees);
    if (thread != b.thread) {
      ++s.freed_by_others;
    } else if (how == block_end::freed && b.newer_plus_one == 0) {
      ++s.freed_newest;
    }
    if (walk_.allocations_of(b.thread) - b.before_it <= site_habits::soon + 1) ++s.short_lived;
    if (living.blocks != 0) return;
    ++s.endings;
    now.gathered -= living.gathered;
  }

  void takes_over(const walked_block& former, const walked_block& next, std::uint64_t, std::uint64_t) {
    if (next.site == 0) return;
    site_habits& s = all.sites[next.site - 1U];
    ++s.takeovers;
    s.grown_bytes += next.size;
    if (former.has_taken_over && former.site == next.site)
      s.grown_bytes -= former.size;
    else
      ++s.rows;
  }

  program_habits all;

 private:
  struct site_now {
    std::uint64_t live = 0, gathered = 0;  ///< bytes
  };
  using size_counts = tsl::robin_map<std::uint64_t, std::uint64_t>;

  static void count_size(site_habits& s, size_counts& counts, std::uint64_t size) {
    constexpr std::size_t most_sizes = 4096;  // of which one is the usual one, or none
    const auto known = counts.find(size);
    if (known == counts.end() && counts.size() == most_sizes) return;
    const std::uint64_t count = ++counts[size];
    if (count <= s.usual_allocations) return;
    s.usual_allocations = count;
    s.usual_size = size;
  }

  const block_walk& walk_;
  std::vector<size_counts> sizes_;
  std::vector<site_now> now_;
  std::uint64_t live_ = 0;
};

/// What lives of each site, until it is as much as at the peak.
struct peak_finder {
  void begins(const walked_block& b, const living_blocks&) {
    live += b.size;
    if (b.site != 0) of_site[b.site - 1U] += b.size;
    if (live != peak || is_found) return;
    is_found = true;
    at_peak = of_site;
  }
  void ends(const walked_block& b, const living_blocks&, block_end, std::uint32_t, std::uint64_t) {
    live -= b.size;
    if (b.site != 0) of_site[b.site - 1U] -= b.size;
  }
  void takes_over(const walked_block&, const walked_block&, std::uint64_t, std::uint64_t) {}

  std::uint64_t peak;
  std::vector<std::uint64_t> of_site, at_peak{};  ///< bytes
  std::uint64_t live = 0;
  bool is_found = false;
};

}  // namespace

program_habits habits_of(const mapped_plan& plan, std::size_t sites) {
  block_walk walk(plan);
  habit_counter counter(walk, sites);
  walk.run(counter);
  peak_finder finder{.peak = counter.all.live_peak, .of_site = std::vector<std::uint64_t>(sites)};
  block_walk(plan).run(finder);
  for (std::size_t i = 0; i < sites && finder.is_found; ++i)
    counter.all.sites[i].live_at_program_peak = finder.at_peak[i];
  return counter.all;
}

}  // namespace heapwright::tool
