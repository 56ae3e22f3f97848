// The page template, web/compare.html, as CMake put it into the program.
#pragma once

#include <string_view>

namespace heapwright::tool {

extern const std::string_view compare_page;

}  // namespace heapwright::tool
