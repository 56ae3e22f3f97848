// A heap as people read it in a terminal, while its process runs.
#pragma once

#include <string>
#include <vector>

#include "heap_reading.hpp"

namespace heapwright::tool {

/// Where its bytes are: lines, of which each may be broken where three spaces are.
[[nodiscard]] std::vector<std::string> lines_of_heap(const heap_reading& of);

/// Its size classes that have spans, those with the most bytes first, below a line of titles.
[[nodiscard]] std::vector<std::string> lines_of_classes(const heap_reading& of);

}  // namespace heapwright::tool
