// What would be if a program did as it is advised: its plan, with blocks of some call sites from
// parts of the kit, or with blocks that do not grow because they have their last size at once.
#pragma once

#include <span>

#include "advice_rules.hpp"
#include "mapped_plan.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {

/// Writes the plan to `to`. `followed`: of different sites, and not more than operation::last_part
/// that take a part. Throws `failure` if there is no room. O(operations).
void write_advised_plan(const mapped_plan& as_is, std::span<const advice> followed, const scratch_file& to);

}  // namespace heapwright::tool
