// Candidates made into mallocs, and replayed beside the default: which of them are worth real runs.
//
//   try        builds a candidate, and replays the plan under it, in turns and at full speed
//   step       goes on from the best of them, one field at a time
//   choose     the finalists, by the rules of tried_recipe.hpp
//
// What replays say is a reason to look at a recipe, and none to believe in it: the proof is made of
// real runs.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "awaited_signals.hpp"
#include "candidate.hpp"
#include "levers.hpp"
#include "recipe_build.hpp"
#include "replay_runs.hpp"
#include "scratch_file.hpp"
#include "tried_recipe.hpp"

namespace heapwright::tool {

class recipe_search {
 public:
  /// `plan` must outlive it. `compiler`: empty for $CXX, or else c++. Throws `failure` if it cannot
  /// compile a recipe.
  recipe_search(const scratch_file& plan, std::string compiler);

  /// Replays the default, and fills in what that says. Throws `failure` if it cannot be replayed.
  void replay_default(fit_evidence& into);

  /// Throws `interrupted`, and `failure` where no compiler can be had.
  void try_out(const candidate& what);

  /// Candidates from what has gained so far: all that is for memory, of that what seems to cost no
  /// time, all that is for time, and both.
  [[nodiscard]] std::vector<candidate> combinations(fit_goal goal) const;

  /// One more, a field away from the best so far that seems to cost no time; for the goals that ask
  /// for memory, of which replays know most. False: no field that is changed by itself promises
  /// more.
  bool try_step(fit_goal goal);

  /// Marks up to so many, the most promising first, and returns them.
  std::vector<const tried_recipe*> choose(fit_goal goal, std::size_t most);

  [[nodiscard]] const std::deque<tried_recipe>& tried() const noexcept { return tried_; }
  [[nodiscard]] const scratch_folder& scratch() const noexcept { return scratch_; }
  /// Of one candidate, on average; of the default's replays where none was tried.
  [[nodiscard]] double seconds_of_one() const noexcept;

  /// The header of a candidate, to be built.
  [[nodiscard]] std::string write_header(const candidate& what, const std::vector<std::string>& comment) const;

 private:
  void replay(tried_recipe& into);

  const scratch_file& plan_;
  std::string compiler_;
  scratch_folder scratch_;
  replay_row default_;
  double share_ = 0;  ///< of the program's time that malloc takes
  double seconds_ = 0;
  std::deque<tried_recipe> tried_;  ///< the combinations, then the steps
  std::size_t next_step_ = 0, steps_without_gain_ = 0;
};

}  // namespace heapwright::tool
