// What replays say of a candidate, and which candidates are worth real runs: the finalists.
//
// Problem    replays are right about memory within some per cent. Of time they know what malloc
//            takes, and nothing of the program's own.
// Rules      a candidate that needs more memory is left out. One that seems to cost time may be
//            right for all that: real runs look at it too, beside others that seem to cost none.
// Invariant  a pure policy: ratios in, a choice out.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "candidate.hpp"
#include "levers.hpp"

namespace heapwright::tool {

/// The least difference that replays tell from noise: memory is equal in each, time is not.
inline constexpr double seen_in_memory = 0.002, seen_in_time = 0.03;

struct tried_recipe {
  candidate what;
  std::string library;  ///< in the search's scratch folder
  std::string failure;  ///< why there are no figures; empty if there are
  // Of replays, to the default's.
  double peak_ratio = 1, end_ratio = 1, malloc_time_ratio = 1;
  bool adds_nothing = false;  ///< a step that does not gain on the recipe that it was made from
  bool is_finalist = false;
};

/// What real runs will show if the replays are right: the product of the goal's ratios.
/// `malloc_share`: of the program's time that malloc takes under the default, 0 to 1.
double predicted(const tried_recipe& one, fit_goal goal, double malloc_share);

/// Whether it needs more memory than a verdict allows.
bool is_harmed(const tried_recipe& one);

/// Whether the program would take longer than a verdict allows if the replays were right about
/// time.
bool seems_slow(const tried_recipe& one, double malloc_share);

/// Marks up to `most` finalists, and returns them, the most promising first. Such that seem slow
/// get half of the places, and those that no other takes.
std::vector<const tried_recipe*> choose_finalists(std::deque<tried_recipe>& tried, fit_goal goal, double malloc_share,
                                                  std::size_t most);

}  // namespace heapwright::tool
