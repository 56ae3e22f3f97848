// Advice of `heapwright advise --json`, shown beside the call sites of a live program.
#pragma once

#include <string>

namespace heapwright::tool {

/// What the page shows of it: {"advice": [{"kind", "function", "file", "line", "container", "seen",
/// "part", "saves", "code"}, ...]}, without that which saves nothing. `file`: empty for no advice.
/// Throws `failure` if it is not what `advise` writes.
[[nodiscard]] std::string advice_view(const std::string& file);

}  // namespace heapwright::tool
