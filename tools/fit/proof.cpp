#include "proof.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quantities.hpp"

namespace heapwright::tool {
namespace {

const comparison_row* row_of(const comparison& all, const std::string& name) {
  const auto found = std::ranges::find(all.rows, name, [](const comparison_row& r) { return r.who.name; });
  return found == all.rows.end() || !found->failure.empty() ? nullptr : &*found;
}

bool is_goal_of(const metric& m, fit_goal goal) {
  const bool is_memory = m.show == show_bytes, is_time = m.key == "wall_seconds" || m.is_from_driver;
  switch (goal) {
    case fit_goal::memory: return is_memory;
    case fit_goal::time: return is_time;
    case fit_goal::both: return is_memory || is_time;
    case fit_goal::latency: return m.is_from_driver && !m.higher_is_better;
  }
  return false;
}

/// "peak RSS -14 % (-17 to -11 %)".
std::string change_of(const judged_figure& f) {
  const bool is_up = f.what.higher_is_better;
  const auto percent = [&](double ratio) { return 100 * ((is_up ? 1 / ratio : ratio) - 1); };
  if (f.ratio.judge(least_gain) == ratio_verdict::same || (!f.has_gained && f.ratio.low <= 1 && f.ratio.high >= 1))
    return fmt::format("{} {}", f.what.title,
                       f.ratio.judge(0.03) == ratio_verdict::same
                           ? "same"
                           : fmt::format("unclear ({}-{})", shown_bound(f.ratio.low), shown_bound(f.ratio.high)));
  double from = percent(f.ratio.low), to = percent(f.ratio.high);
  if (from > to) std::swap(from, to);
  const std::string range = std::round(from) == std::round(to) ? "" : fmt::format(" ({:+.0f} to {:+.0f} %)", from, to);
  return fmt::format("{} {:+.0f} %{}", f.what.title, percent(f.ratio.ratio), range);
}

/// The other mallocs of a comparison.
std::vector<std::string> others_of(const comparison& all) {
  std::vector<std::string> names;
  for (const comparison_row& row : all.rows)
    if (row.failure.empty() && row.difference.empty() && row.who.name != default_row && row.who.name != fitted_row)
      names.push_back(row.who.name);
  return names;
}

bool gains_everywhere(const std::vector<comparison>& proofs, const std::string& row, const std::string& reference,
                      fit_goal goal, unsigned looks) {
  return std::ranges::all_of(proofs,
                             [&](const comparison& one) { return is_gain(judge(one, row, reference, goal, looks)); });
}

/// Of the mallocs that gain on the best of ours, the one that gains most.
std::optional<std::string> better_than(const std::vector<comparison>& proofs, const std::string& ours, fit_goal goal) {
  const std::vector<std::string> others = others_of(proofs.front());
  std::optional<std::string> best;
  double best_score = 1;
  for (const std::string& name : others) {
    if (!gains_everywhere(proofs, name, ours, goal, static_cast<unsigned>(others.size()))) continue;
    const double its = score(judge(proofs.front(), name, ours, goal)).value_or(1);
    if (best && its >= best_score) continue;
    best = name;
    best_score = its;
  }
  return best;
}

/// The metrics that a verdict is about.
std::vector<metric> metrics_in_verdicts(const comparison& all) {
  std::vector<metric> metrics = metrics_of(all);
  std::erase_if(metrics, [](const metric& m) { return m.noun.empty(); });
  return metrics;
}

/// By which the doubt of a gain is divided.
long chances_to_gain(const comparison& all, fit_goal goal, unsigned looks) {
  const std::vector<metric> metrics = metrics_in_verdicts(all);
  return std::max<long>(std::ranges::count_if(metrics, [&](const metric& m) { return is_goal_of(m, goal); }) * looks,
                        1);
}

/// A row and its reference; null where one of them says nothing.
std::pair<const comparison_row*, const comparison_row*> rows_to_judge(const comparison& all, const std::string& row,
                                                                      const std::string& reference) {
  const comparison_row *const its = row_of(all, row), *const to = row_of(all, reference);
  if (its == nullptr || to == nullptr || !its->difference.empty()) return {nullptr, nullptr};
  return {its, to};
}

std::optional<judged_figure> judged(const metric& m, const comparison_row& its, const comparison_row& to, fit_goal goal,
                                    long chances) {
  std::vector<double> ours, theirs;
  for (std::size_t i = 0; i < std::min(its.rounds.size(), to.rounds.size()); ++i) {
    ours.push_back(m.value(its.rounds[i]));
    theirs.push_back(m.value(to.rounds[i]));
  }
  if (m.higher_is_better) std::swap(ours, theirs);
  const auto ratio = paired_ratio(ours, theirs);
  if (!ratio) return std::nullopt;
  const double surely = paired_ratio(ours, theirs, doubt_of_gain / static_cast<double>(chances))->high;
  const double least = m.show == show_bytes ? least_bytes : m.key == "wall_seconds" ? least_seconds : 0;
  const bool matters = std::abs(median(ours) - median(theirs)) >= least;
  const double r = ratio->ratio;
  return judged_figure{m,
                       is_goal_of(m, goal),
                       *ratio,
                       matters && r <= 1 - least_gain && surely < 1,
                       matters && r > 1 + most_harm && paired_ratio(ours, theirs, doubt_of_harm)->low > 1,
                       !matters};
}

}  // namespace

std::string changes_of(const std::vector<judged_figure>& figures) {
  std::vector<std::string> goals, others;
  for (const judged_figure& f : figures) (f.is_goal && f.has_gained ? goals : others).push_back(change_of(f));
  goals.insert(goals.end(), others.begin(), others.end());
  return fmt::format("{}", fmt::join(goals, ", "));
}

std::vector<judged_figure> judge(const comparison& all, const std::string& row, const std::string& reference,
                                 fit_goal goal, unsigned looks) {
  const auto [its, to] = rows_to_judge(all, row, reference);
  std::vector<judged_figure> figures;
  if (its == nullptr) return figures;
  for (const metric& m : metrics_in_verdicts(all))
    if (const auto one = judged(m, *its, *to, goal, chances_to_gain(all, goal, looks))) figures.push_back(*one);
  return figures;
}

std::optional<judged_figure> judge_figure(const comparison& all, const std::string& row, const metric& figure,
                                          fit_goal goal) {
  const auto [its, to] = rows_to_judge(all, row, default_row);
  if (its == nullptr || its == to) return std::nullopt;
  const std::size_t looks = row == fitted_row ? 1 : others_of(all).size();
  return judged(figure, *its, *to, goal, chances_to_gain(all, goal, static_cast<unsigned>(looks)));
}

std::optional<double> score(const std::vector<judged_figure>& figures) {
  double product = 1;
  for (const judged_figure& f : figures) {
    if (f.is_harmed) return std::nullopt;
    if (f.is_goal) product *= f.ratio.ratio;
  }
  if (figures.empty()) return std::nullopt;
  return product;
}

bool is_gain(const std::vector<judged_figure>& figures) {
  return std::ranges::any_of(figures, [](const judged_figure& f) { return f.is_goal && f.has_gained; }) &&
         std::ranges::none_of(figures, &judged_figure::is_harmed);
}

namespace {

/// What is to be said of the best recipe where it is not the answer.
std::string why_not_fitted(const std::vector<comparison>& proofs, fit_goal goal) {
  const auto first = judge(proofs.front(), fitted_row, default_row, goal);
  if (first.empty()) return {};
  const bool has_gained = std::ranges::any_of(first, [](const judged_figure& f) { return f.is_goal && f.has_gained; });
  if (!has_gained) return fmt::format("the best recipe, on fresh rounds: {}", changes_of(first));
  if (!is_gain(first)) return fmt::format("the best recipe gains, but does harm as well: {}", changes_of(first));
  for (std::size_t i = 1; i < proofs.size(); ++i)
    if (const auto other = judge(proofs[i], fitted_row, default_row, goal); !is_gain(other))
      return fmt::format("the best recipe gains on the command, but not on input {}: {}; there {}", i,
                         changes_of(first), other.empty() ? "it fails" : changes_of(other));
  return {};
}

/// Whether a goal's figure looks better: by as much as a gain needs, with an interval below 1.
bool looks_better(const judged_figure& f) { return f.is_goal && f.ratio.ratio <= 1 - least_gain && f.ratio.high < 1; }

/// What less is no gain.
std::string least_of(const judged_figure& f) {
  return f.what.show == show_bytes ? show_bytes(least_bytes) : show_seconds(least_seconds);
}

std::string keep_the_default(const std::vector<comparison>& proofs, const std::string& of_recipe, fit_goal goal) {
  const auto best = judge(proofs.front(), fitted_row, default_row, goal);
  const auto is = [&](auto what) {
    return std::ranges::any_of(best, [&](const judged_figure& f) { return f.is_goal && what(f); });
  };
  if (is([](const judged_figure& f) { return f.has_gained; })) return "keep the default: " + of_recipe;
  const bool is_unclear =
      is([](const judged_figure& f) { return f.ratio.judge(most_harm + 0.01) == ratio_verdict::unclear; });
  const auto little = std::ranges::find_if(best, [](const judged_figure& f) { return f.is_little && looks_better(f); });
  return fmt::format("keep the default: no recipe {} more than {:.0f} %{}{}{}",
                     is_unclear ? "was shown to gain" : "gained", 100 * least_gain,
                     little == best.end() ? "" : " and " + least_of(*little), of_recipe.empty() ? "" : "; ", of_recipe);
}

/// Why a malloc that looks better than the answer is not the answer.
std::string why_not_it(const std::vector<comparison>& proofs, const std::string& name, const std::string& answer,
                       fit_goal goal) {
  const auto looks = static_cast<unsigned>(others_of(proofs.front()).size());
  const auto its = judge(proofs.front(), name, answer, goal, looks);
  if (std::ranges::any_of(its, &judged_figure::is_harmed)) return ", because it does harm as well";
  if (is_gain(its)) {
    if (!gains_everywhere(proofs, name, answer, goal, looks)) return ", because it does not gain on each input";
    return ", because another one gains more";
  }
  for (const judged_figure& f : its)
    if (f.is_little && looks_better(f)) return fmt::format(": less than {} is no gain", least_of(f));
  return ", because that is not proven well enough";
}

/// On mallocs whose figures look better than those of the row that is the answer.
std::vector<std::string> notes_on_others(const std::vector<comparison>& proofs, const std::string& answer,
                                         fit_goal goal) {
  std::vector<std::string> notes;
  const std::string title = answer == fitted_row ? "the recipe" : answer == default_row ? "the default" : answer;
  for (const std::string& name : others_of(proofs.front())) {
    if (name == answer) continue;
    if (const auto its = judge(proofs.front(), name, answer, goal); std::ranges::any_of(its, looks_better))
      notes.push_back(fmt::format("{} beside {}: {}; it is not the answer{}", name, title, changes_of(its),
                                  why_not_it(proofs, name, answer, goal)));
  }
  return notes;
}

}  // namespace

fit_answer answer_of(const std::vector<comparison>& proofs, bool has_fitted, fit_goal goal) {
  const bool is_fitted = has_fitted && gains_everywhere(proofs, fitted_row, default_row, goal, 1);
  const std::string of_recipe = has_fitted && !is_fitted ? why_not_fitted(proofs, goal) : "";
  const std::string ours = is_fitted ? fitted_row : default_row;
  if (const auto other = better_than(proofs, ours, goal)) {
    return {
        fit_verdict::other_allocator,
        fmt::format("for this program {} is better than {}: {}{}{}", *other,
                    is_fitted ? "the best recipe that was found" : "the default",
                    changes_of(judge(proofs.front(), *other, ours, goal)), of_recipe.empty() ? "" : "; ", of_recipe),
        *other, notes_on_others(proofs, *other, goal)};
  }
  if (is_fitted) {
    std::string sentence = changes_of(judge(proofs.front(), fitted_row, default_row, goal));
    for (std::size_t i = 1; i < proofs.size(); ++i)
      sentence += fmt::format("; on input {}: {}", i, changes_of(judge(proofs[i], fitted_row, default_row, goal)));
    return {fit_verdict::fitted, sentence, "", notes_on_others(proofs, fitted_row, goal)};
  }
  return {fit_verdict::keep_default, keep_the_default(proofs, of_recipe, goal), "",
          notes_on_others(proofs, default_row, goal)};
}

}  // namespace heapwright::tool
