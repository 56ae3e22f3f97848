// What one stack contributes to a question, and the places of its frames: shared by the views of
// stacks.
#pragma once

#include <compare>
#include <vector>

#include <nlohmann/json.hpp>

#include "views.hpp"

namespace heapwright::tool {

struct measured {
  double value = 0;  ///< as asked for; with a baseline: |grown|
  double grown = 0;  ///< less what it was at the baseline
  double variance = 0;
  double unseen = 0;  ///< what a sample may stand for that was not seen, in the unit of `value`

  measured& operator+=(const measured& o) noexcept;
};

/// Of an estimate: 95 of 100 are nearer to the truth than this, also where few blocks were sampled
/// or none. `variance` is of what was seen. What was not seen adds to it: by `unseen` for each byte
/// by which the truth is above the estimate. So the truth t may be as far from the estimate x as
///
///   (t - x)^2 = 1.96^2 (variance + unseen (t - x))
///
/// says (the score interval). Of n samples of equal weight w it says what is said of a Poisson
/// number: n = 0: at most 3.8 w; n = 1: 5.7 w; n = 100: 121 w. An estimate is as far below the
/// truth at most as above it, so that one number will do.
[[nodiscard]] double error_of(double variance, double unseen) noexcept;

[[nodiscard]] inline double error_of(const measured& m) noexcept { return error_of(m.variance, m.unseen); }

/// Whether the error leaves nothing to say but how much it may be at most: value + error.
[[nodiscard]] inline bool is_vague(double value, double error) noexcept { return error > value; }

/// Orders figures as a table shows them, the least first: those that are known at most by their
/// upper bound, below all others by their value.
struct shown_size {
  bool is_figure;
  double bytes;

  shown_size(double value, double error) noexcept
      : is_figure(!is_vague(value, error)), bytes(is_figure ? value : value + error) {}
  friend auto operator<=>(const shown_size&, const shown_size&) = default;
};

[[nodiscard]] measured measure(const segment::stack_figures& s, const stack_question& question);

/// What a sample of a stack that was not seen at all may stand for, in bytes.
[[nodiscard]] double unseen_of_unknown(const segment::process_figures& process);

/// The same of all stacks of a process together, as of one site that has them all: samples of
/// frequent paths are thinned, so that they stand for more than the interval says.
[[nodiscard]] double unseen_of_all(const segment::process_figures& process,
                                   const std::vector<segment::stack_figures>& stacks);

/// Whether the question is about stacks of threads of this name.
[[nodiscard]] bool asks_for(const stack_question& question, const std::string& name_of_threads);

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
