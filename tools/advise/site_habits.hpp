// What the blocks of each call site do, counted from a plan that has sites (replay/plan.hpp).
//
// Invariant  figures only. What they suggest is said in advice_rules.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mapped_plan.hpp"

namespace heapwright::tool {

struct site_habits {
  /// A block of so many bytes fits into what owns it.
  static constexpr std::uint64_t small = 128;
  /// A block lives shortly if its thread allocates at most so often until it is freed.
  static constexpr std::uint64_t soon = 32;

  std::uint64_t allocations = 0;  ///< reallocations too
  std::uint64_t bytes = 0;
  std::uint64_t frees = 0;
  std::uint64_t usual_size = 0, usual_allocations = 0;  ///< the most frequent size
  std::uint64_t largest = 0;                            ///< bytes of one block
  std::uint64_t small_allocations = 0, short_lived = 0;
  std::uint64_t freed_by_others = 0;                            ///< by another thread than the block's
  std::uint64_t freed_newest = 0;                               ///< by its own thread, and no newer one lived
  std::uint64_t resized = 0;                                    ///< ended by a realloc
  std::uint64_t takeovers = 0;                                  ///< of blocks that grew (block_walk.hpp)
  std::uint64_t rows = 0, grown_bytes = 0;                      ///< blocks that have grown, and what they became in all
  std::uint64_t live_peak = 0, live_at_program_peak = 0;        ///< bytes
  std::uint64_t thread_live_bytes = 0, thread_live_blocks = 0;  ///< the most of one thread
  std::uint64_t gathered_peak = 0;  ///< bytes at most, if none came free while another one of its thread lives
  std::uint64_t endings = 0;        ///< how often the last one that lived of a thread was freed
  std::uint64_t live_at_end = 0;    ///< blocks
  std::uint64_t threads = 0;        ///< that allocate
};

struct program_habits {
  std::vector<site_habits> sites;  ///< number 1 first
  std::uint64_t allocations = 0;
  std::uint64_t live_peak = 0;  ///< bytes
  bool is_torn = false;         ///< the trace ends before the recording did: blocks that live then may be freed later
};

/// Two walks over the plan: the first counts, the second stops at the peak of what lives, to tell
/// whose it is. O(operations).
program_habits habits_of(const mapped_plan& plan, std::size_t sites);

}  // namespace heapwright::tool
