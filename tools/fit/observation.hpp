// What a program does with its memory, counted from the plan of its trace (replay/plan.hpp).
//
// Problem    a recipe has some forty fields. Which of them matter to a program shows in what it
//            does: the sizes it asks for, who frees its blocks, how what lives goes up and down.
// How        two walks over the plan, in turns. The first finds the peak of what lives, the second
//            what lived then.
// Invariant  figures only. What they mean for a recipe is said in levers.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace heapwright::tool {

struct size_use {
  std::uint64_t size = 0;  ///< bytes, as asked for
  std::uint64_t allocations = 0;
  std::uint64_t live_at_peak = 0;  ///< blocks
  std::uint64_t live_at_most = 0;  ///< blocks of this size at one time, whenever that was
  std::uint64_t threads = 0;       ///< that ask for it: bit i % 64 for thread i
};

/// What a thread's cache would have to move if it kept so many bytes of each size class.
struct cache_use {
  std::uint64_t limit = 0;      ///< bytes per size class
  std::uint64_t transfers = 0;  ///< refills and flushes, of a batch each
};

struct live_moment {
  std::uint64_t at_ns = 0;
  std::uint64_t bytes = 0;
};

struct observation {
  static constexpr std::array<std::uint64_t, 5> cache_limits{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};

  std::uint64_t allocations = 0, frees = 0, resizes = 0;  ///< a resize is no allocation, and no free
  std::uint64_t allocated_bytes = 0;
  std::uint64_t freed_by_others = 0;                     ///< frees and resizes by another thread than the block's
  std::uint64_t short_lived = 0;                         ///< blocks that were freed within a millisecond
  std::uint64_t large_allocations = 0, large_bytes = 0;  ///< of more than the longest size class
  std::uint64_t threads = 0, threads_at_once = 0;
  std::uint64_t duration_ns = 0, longest_pause_ns = 0;
  std::uint64_t live_peak = 0, live_peak_ns = 0, live_at_end = 0;  ///< bytes asked for, not freed
  std::uint64_t live_mean = 0;                                     ///< over the time
  std::uint64_t regrown = 0;         ///< bytes by which what lives has grown again after it fell
  std::vector<size_use> sizes;       ///< rising
  std::vector<cache_use> caches;     ///< one for each of `cache_limits`
  std::vector<live_moment> history;  ///< some hundred moments, for a picture

  [[nodiscard]] std::uint64_t all_allocations() const noexcept { return allocations + resizes; }
};

/// `plan`: a descriptor of a plan. Throws `failure` if it cannot be mapped. O(operations).
observation observe(int plan);

}  // namespace heapwright::tool
