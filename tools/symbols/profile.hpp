// Stacks as other tools read them: pprof's profile.proto, as Go's runtime writes it for heaps, and
// the collapsed text of flame graph tools.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "segment_reader.hpp"
#include "symbols.hpp"

namespace heapwright::tool {

enum class heap_measure { alloc_objects, alloc_space, inuse_objects, inuse_space };

struct measure_text {
  heap_measure measure;
  const char* type;
  const char* unit;
};

/// In the order in which a profile has them, by the names that Go's heap profiles have.
inline constexpr std::array<measure_text, 4> heap_measures{{
    {heap_measure::alloc_objects, "alloc_objects", "count"},
    {heap_measure::alloc_space, "alloc_space", "bytes"},
    {heap_measure::inuse_objects, "inuse_objects", "count"},
    {heap_measure::inuse_space, "inuse_space", "bytes"},
}};

using heap_values = std::array<std::int64_t, heap_measures.size()>;

/// What each stack had allocated by an earlier moment.
struct allocated_figures {
  double blocks = 0;
  std::uint64_t bytes = 0;
};
using allocated_before = std::unordered_map<segment::reference, allocated_figures>;

struct profile_options {
  heap_measure shown_first = heap_measure::inuse_space;  ///< Go's `heap`; `allocs` shows alloc_space
  std::uint64_t interval = 0;                            ///< bytes between samples
  std::uint64_t at_unix_ns = 0;
  std::uint64_t duration_ns = 0;
  std::vector<std::string> thread_names = {};  ///< segment::snapshot's: stacks have their threads' as a label
  std::string program = {};  ///< path of the executable, the first module that pprof expects; empty: not known
  bool is_difference =
      false;  ///< what is in use may have become less. Otherwise negative values, which torn readings can give, are 0
  const allocated_before* before = nullptr;  ///< set: alloc_* are what was allocated since then; inuse_* stay
};

/// A line for each stack whose value is above 0: `outermost;...;innermost VALUE`. Inlined functions
/// are frames of their own.
[[nodiscard]] std::string collapsed_stacks(const std::vector<segment::stack_figures>& stacks, symbolizer& symbols,
                                           heap_measure measure);

/// Of one stack, in the order of heap_measures.
[[nodiscard]] heap_values values_of(const segment::stack_figures& stack, const profile_options& options);

/// What OTLP calls a resource: the process that has allocated.
struct profile_resource {
  std::vector<std::pair<std::string, std::string>> attributes;
  std::int64_t process_id = 0;
};

/// An ExportProfilesServiceRequest of OTLP's profiles, v1development, compressed by gzip: one
/// profile for each of heap_measures, of the `duration_ns` before `at_unix_ns`. Names of threads
/// are left out. Throws std::runtime_error if it cannot be compressed.
[[nodiscard]] std::string otlp_profiles(const std::vector<segment::stack_figures>& stacks, symbolizer& symbols,
                                        const profile_options& options, const profile_resource& resource);

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
