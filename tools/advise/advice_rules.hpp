// What the kit could do for a call site, by what its blocks do.
//
// Rules      one table, in advice_rules.cpp: what is seen, what to do. docs/advise.md shows the
//            same table; a test compares the two. Of several rules that a site fits, the first one
//            counts.
// Invariant  a pure policy: it is told numbers and answers advice, with the reason as a sentence.
//            What it gains has to be measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan.hpp"
#include "site_habits.hpp"

namespace heapwright::tool {

enum class advice_kind { small_buffer, reserve, stack_arena, arena, pool, shared_pool, hand_over };

struct advice {
  advice_kind kind{};
  std::uint16_t site = 0;   ///< its number
  std::string seen{};       ///< a sentence with figures
  std::uint64_t bytes = 0;  ///< of a buffer, of a block, or, to be reserved, of what a block becomes on average

  /// "stack arena".
  [[nodiscard]] const char* name() const noexcept;
  /// What to take from the kit.
  [[nodiscard]] const char* part() const noexcept;
  /// Nothing for what no part of the kit does.
  [[nodiscard]] std::optional<replay::kit_part> replayed_part() const noexcept;
  /// Whether a replay can tell what it gains.
  [[nodiscard]] bool can_be_replayed() const noexcept { return kind != advice_kind::hand_over; }
};

/// Those that matter most first: at least a hundredth of the allocations, or of what lives at the
/// program's peak.
std::vector<advice> advice_for(const program_habits& seen);

/// The rules as the rows of a table in Markdown, for docs/advise.md.
std::string advice_rules_as_markdown();

}  // namespace heapwright::tool
