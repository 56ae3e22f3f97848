// What one stack contributes to a question, and the places of its frames: shared by the views of
// stacks.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "views.hpp"

namespace heapwright::tool {

struct measured {
  double value = 0;  ///< as asked for; with a baseline: |grown|
  double grown = 0;  ///< less what it was at the baseline
  double variance = 0;

  measured& operator+=(const measured& o) noexcept;
};

/// Of an estimate: 95 of 100 are nearer to the truth than this. Source: the normal distribution,
/// which sums of many samples have; sums of few are less certain than it says.
[[nodiscard]] double error_of(double variance) noexcept;

/// What a baseline keeps of a stack.
[[nodiscard]] baseline::counted counted_by(const segment::stack_figures& s);

[[nodiscard]] measured measure(const segment::stack_figures& s, const stack_question& question);

/// Places of all frames, the innermost first; inlined ones are frames of their own.
[[nodiscard]] std::vector<std::uint32_t> places_of(const segment::stack_figures& s, const segment::snapshot& figures,
                                                   places_book& book);

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
