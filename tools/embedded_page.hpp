// The page templates of web/, as CMake put them into the program.
#pragma once

#include <string>
#include <string_view>

namespace heapwright::tool {

extern const std::string_view advise_page, compare_page, fit_page, replay_page;

/// The page with this JSON in the place that it has for it.
std::string page_with_data(std::string_view page, std::string data);

}  // namespace heapwright::tool
