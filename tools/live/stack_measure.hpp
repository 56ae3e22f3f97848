// What one stack contributes to a question, and the places of its frames: shared by the views of stacks.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "views.hpp"

namespace heapwright::tool {

struct measured {
  double value = 0;  ///< as asked for; with a baseline: |grown|
  double grown = 0;  ///< less what it was at the baseline
};

[[nodiscard]] measured measure(const trace::stack_figures& s, const stack_question& question);

/// Places of all frames, the innermost first; inlined ones are frames of their own.
[[nodiscard]] std::vector<std::uint32_t> places_of(const trace::stack_figures& s, const trace::snapshot& figures,
                                                   places_book& book);

/// Where the allocation is in the program's own code: the first place that is no machinery; the innermost, if all are.
[[nodiscard]] std::size_t site_in(const std::vector<std::uint32_t>& places, const places_book& book);

/// The places that an answer mentions, each once; an answer has its own numbers for them.
class place_table {
 public:
  explicit place_table(const places_book& book) : book_(book) {}
  [[nodiscard]] std::uint32_t number(std::uint32_t in_book);
  /// Rows of function, file, line, module, inlined (0 or 1).
  [[nodiscard]] nlohmann::ordered_json rows() const;

 private:
  const places_book& book_;
  std::vector<std::uint32_t> used_;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;
};

}  // namespace heapwright::tool
