// The page as one file that needs no server: what it shows is within it, as it was at one moment.
#pragma once

#include <optional>
#include <string>

#include "routes.hpp"

namespace heapwright::tool {

/// What a snapshot opens with.
struct snapshot_opening {
  std::string view = {};                    ///< as the page's address has it behind "#"; empty: as the page does
  std::optional<std::string> process = {};  ///< its name; nothing: as the page does
};

/// Of the processes with most live bytes, eight at most, and of the first and the one that it opens
/// with. Takes as long as some fifty answers of the server for each. Throws std::runtime_error if
/// it cannot be compressed.
[[nodiscard]] std::string snapshot_page(const shown_run& what, const snapshot_opening& opening = {});

}  // namespace heapwright::tool
