// What a fit found: the model that the text, the JSON and the page are views of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comparison.hpp"
#include "levers.hpp"
#include "proof.hpp"
#include "recipe_search.hpp"

namespace heapwright::tool {

struct fit_report {
  std::vector<std::string> command;
  std::string started;  ///< local time, ISO 8601
  machine_description machine;
  fit_goal goal = fit_goal::both;
  std::optional<fit_evidence> evidence;  ///< nothing: it was not recorded
  std::vector<tried_recipe> tried;
  std::optional<comparison> selection;  ///< the rounds in which the finalist was chosen
  std::vector<comparison> proofs;
  fit_answer answer;
  std::optional<candidate> fitted;  ///< what was proven, whatever the verdict
  // Paths; empty where there is none.
  std::string recipe, library, page;
  double seconds = 0;  ///< that all of it took
  std::vector<std::string> notes;
  int interrupted_by = 0;
};

const char* name_of(fit_goal goal) noexcept;

std::string text_view(const fit_report& all, bool colour);
std::string json_view(const fit_report& all);
std::string page_view(const fit_report& all);

/// The comment at the top of a recipe's header, a paragraph each.
std::vector<std::string> header_comment(const fit_report& all);

}  // namespace heapwright::tool
