// The lines of C++ that follow an advice: a test compiles each against the kit.
#pragma once

#include <string>
#include <vector>

#include "advice_rules.hpp"
#include "program_sites.hpp"

namespace heapwright::tool {

/// `threads`: that allocate at the site.
std::vector<std::string> code_for(const advice& what, const program_site& site, std::uint64_t threads);

}  // namespace heapwright::tool
