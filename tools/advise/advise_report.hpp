// What there is to advise, and what it would save: the model that the text, the JSON and the page
// are views of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "advice_rules.hpp"
#include "plan_builder.hpp"
#include "program_sites.hpp"
#include "site_habits.hpp"
#include "statistics.hpp"

namespace heapwright::tool {

/// Of replays in the same rounds, one as it is and one as advised.
struct saving {
  std::string failure{};                           ///< why there are no figures; empty if there are
  std::vector<double> as_is{}, advised{};          ///< seconds in malloc and the kit's parts, by round
  std::uint64_t peak_as_is = 0, peak_advised = 0;  ///< bytes

  /// Seconds. Negative: it costs. Nothing for fewer than two rounds.
  [[nodiscard]] std::optional<median_estimate> time() const { return paired_difference(as_is, advised); }
  [[nodiscard]] double seconds() const { return time().value_or(median_estimate{}).median; }
  /// A part of the time in malloc.
  [[nodiscard]] double of_malloc(double seconds) const;
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(peak_as_is) - static_cast<std::int64_t>(peak_advised);
  }
  /// A hundredth of the time in malloc, beyond doubt, or of the peak.
  [[nodiscard]] bool is_worth_it() const;
};

struct given_advice {
  advice what;
  std::vector<std::string> code;
  saving saves;  ///< nothing in it for what cannot be replayed

  /// Its replay has not come before the end.
  [[nodiscard]] bool is_unmeasured() const {
    return what.can_be_replayed() && saves.failure.empty() && saves.as_is.empty();
  }
};

struct advise_report {
  std::string trace;
  traced_process process;
  plan_summary plan;
  program_sites sites;
  program_habits habits;
  std::vector<given_advice> all;   ///< that which saves most first
  std::optional<saving> together;  ///< of two and more: all that is worth it, at once
  double seconds_as_is = 0;        ///< in malloc; 0: not measured
  std::uint64_t peak_as_is = 0;    ///< bytes of memory; 0: not measured
  unsigned rounds = 0;
  std::vector<std::string> notes;
  int interrupted_by = 0;

  /// From its first event to its last.
  [[nodiscard]] double program_seconds() const noexcept { return static_cast<double>(plan.duration_ns) / 1e9; }
  /// Of a torn trace, what that means for the advice; stands before it. Otherwise empty.
  [[nodiscard]] std::string torn_note() const;
  /// Of the program's time, or of its peak, whichever is more.
  [[nodiscard]] double gain(const saving& of) const;
  void sort();
};

/// `columns`: of the terminal; 0: lines have any length.
std::string text_view(const advise_report& all, bool colour, unsigned columns);
std::string json_view(const advise_report& all);
std::string page_view(const advise_report& all);

}  // namespace heapwright::tool
