#pragma once

#include <string>

namespace heapwright::tool {

/// As a file of gzip has it. Throws std::runtime_error where there is no memory, or where `data`
/// has 4 GiB or more.
[[nodiscard]] std::string gzipped(const std::string& data);

}  // namespace heapwright::tool
