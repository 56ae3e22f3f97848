// The past of a process as JSON, for files.
#pragma once

#include <nlohmann/json.hpp>

#include "watched_process.hpp"

namespace heapwright::tool {

[[nodiscard]] nlohmann::ordered_json json_of(const process_past& past);

/// Throws nlohmann::json::exception if it is something else.
[[nodiscard]] process_past past_of(const nlohmann::ordered_json& json);

}  // namespace heapwright::tool
