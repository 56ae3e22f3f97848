// Functions that allocate for others: what a person looks for is their caller.
#pragma once

#include <string>

#include "function_patterns.hpp"

namespace heapwright::tool {

/// malloc and its kin, the C++ library, and the wrappers of well-known programs and libraries.
[[nodiscard]] const function_patterns& known_allocation_wrappers();

/// "std::vector<int> store::make<int>(char)" -> "store::make": without return type, template
/// arguments and parameters, so that patterns need not have them. An operator keeps its whole name.
[[nodiscard]] std::string qualified_name(const std::string& function);

}  // namespace heapwright::tool
