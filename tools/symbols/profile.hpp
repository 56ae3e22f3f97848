// Stacks as other tools read them: pprof's profile.proto, as Go's runtime writes it for heaps, and
// the collapsed text of flame graph tools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "segment_reader.hpp"
#include "symbols.hpp"

namespace heapwright::tool {

enum class heap_measure { alloc_objects, alloc_space, inuse_objects, inuse_space };

struct profile_options {
  heap_measure shown_first = heap_measure::inuse_space;  ///< Go's `heap`; `allocs` shows alloc_space
  std::uint64_t interval = 0;                            ///< bytes between samples
  std::uint64_t at_unix_ns = 0;
  std::uint64_t duration_ns = 0;
  std::vector<std::string> thread_names = {};  ///< segment::snapshot's: stacks have their threads' as a label
  std::string program = {};  ///< path of the executable, the first module that pprof expects; empty: not known
  bool is_difference =
      false;  ///< what is in use may have become less. Otherwise negative values, which torn readings can give, are 0
};

/// A line for each stack whose value is above 0: `outermost;...;innermost VALUE`. Inlined functions
/// are frames of their own.
[[nodiscard]] std::string collapsed_stacks(const std::vector<segment::stack_figures>& stacks, symbolizer& symbols,
                                           heap_measure measure);

/// profile.proto, compressed by gzip, as files of pprof are. Throws std::runtime_error if it cannot
/// be compressed.
[[nodiscard]] std::string pprof_profile(const std::vector<segment::stack_figures>& stacks, symbolizer& symbols,
                                        const profile_options& options);

/// What happened from `earlier` to `later`, two readings of the same segment: of each stack its
/// allocations and frees meanwhile, and those with neither left out. `live_samples` is how many
/// more are live, 0 if fewer.
[[nodiscard]] std::vector<segment::stack_figures> stacks_between(const std::vector<segment::stack_figures>& later,
                                                                 const std::vector<segment::stack_figures>& earlier);

/// Negative where more has been freed than allocated, as in a difference.
[[nodiscard]] std::int64_t value_of(const segment::stack_figures& stack, heap_measure measure);

}  // namespace heapwright::tool
