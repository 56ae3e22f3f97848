// Why a process cannot be recorded, as its probe has left word.
#pragma once

#include <filesystem>
#include <string>

namespace heapwright::tool {

/// Half a sentence. `error`: the errno of the probe when it was about to make its file in this
/// folder.
[[nodiscard]] std::string why_not_recorded(int error, const std::filesystem::path& folder);

}  // namespace heapwright::tool
