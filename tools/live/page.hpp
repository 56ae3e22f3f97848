// The page, web/, as its build script put it into the program: one file, and the policy that allows
// its own script and style and nothing else.
#pragma once

#include <string_view>

namespace heapwright::tool {

extern const std::string_view live_page;
extern const std::string_view live_page_policy;

}  // namespace heapwright::tool
