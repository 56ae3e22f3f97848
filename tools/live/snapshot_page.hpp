// The page as one file that needs no server: what it shows is within it, as it was at one moment.
#pragma once

#include <string>

#include "routes.hpp"

namespace heapwright::tool {

/// Of the processes with most live bytes, eight at most. It opens with `view`, as the page's
/// address has it behind "#"; empty: as the page does. Takes as long as some fifty answers of the
/// server for each. Throws std::runtime_error if it cannot be compressed.
[[nodiscard]] std::string snapshot_page(const shown_run& what, const std::string& view = {});

}  // namespace heapwright::tool
