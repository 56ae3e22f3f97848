// What measured rounds say of a fitted recipe: the verdict of `fit`.
//
// Problem    of several mallocs measured side by side, one looks better by chance.
// Rules      a gain is a goal's figure that is at least `least_gain` better, with an interval of
//            99 % that ends below 1. The 1 % of doubt is divided by the number of chances to gain
//            by chance (Bonferroni): the goal's figures, and of other mallocs, of which the best is
//            looked for, their number as well. A gain does not count where another figure is
//            harmed: by more than 2 %, with an interval of 80 % that begins above 1: less evidence
//            is asked of a harm. Less than `least_bytes` or `least_seconds` is neither. Of several
//            inputs, all must agree.
// Invariant  a pure policy: comparisons in, a verdict and its sentence out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comparison.hpp"
#include "levers.hpp"

namespace heapwright::tool {

inline constexpr double least_gain = 0.02;
inline constexpr double doubt_of_gain = 0.01;
inline constexpr double most_harm = 0.02, doubt_of_harm = 0.2;
inline constexpr double least_bytes = 512 << 10, least_seconds = 0.002;

/// The names of the rows that a proof is about.
inline constexpr const char* default_row = "heapwright";
inline constexpr const char* fitted_row = "fitted";

enum class fit_verdict { fitted, keep_default, other_allocator };

struct judged_figure {
  metric what;
  bool is_goal;
  ratio_estimate ratio;  ///< with an interval of 95 %; below 1 is better, whatever the figure is
  bool has_gained, is_harmed;
  bool is_little;  ///< the difference is less than counts, whatever the ratio
};

/// A row's figures to those of another. Empty: one of the rows failed, or there were fewer than two
/// rounds. `looks`: among so many rows this one is chosen by what these rounds say.
std::vector<judged_figure> judge(const comparison& all, const std::string& row, const std::string& reference,
                                 fit_goal goal, unsigned looks = 1);

/// One figure of a row to the default's, judged as the verdict judges it; of figures that verdicts
/// leave out as well. Nothing for the default itself, and where `judge` says nothing.
std::optional<judged_figure> judge_figure(const comparison& all, const std::string& row, const metric& figure,
                                          fit_goal goal);

/// The product of its goal's ratios; nothing where another figure is harmed, or nothing is known.
std::optional<double> score(const std::vector<judged_figure>& figures);

/// "peak RSS -14 % (-17 to -11 %), wall time same": what the goal has gained comes first.
std::string changes_of(const std::vector<judged_figure>& figures);

/// Whether a goal's figure has gained, and no figure is harmed.
bool is_gain(const std::vector<judged_figure>& figures);

struct fit_answer {
  fit_verdict verdict = fit_verdict::keep_default;
  std::string sentence;
  std::string malloc;              ///< the other malloc, where that is the verdict
  std::vector<std::string> notes;  ///< sentences on what else the figures say
};

/// `has_fitted`: there is a row of the fitted recipe. `proofs`: one for each input, the command's
/// own first.
fit_answer answer_of(const std::vector<comparison>& proofs, bool has_fitted, fit_goal goal);

}  // namespace heapwright::tool
