// A recipe that may fit, as the fields in which it differs from the default, and the header that
// says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heapwright::tool {

struct field_change {
  std::string field;   ///< "thread_cache.share_bytes"
  std::string value;   ///< in C++: "256 * heapwright::KiB"
  std::string reason;  ///< a sentence with figures
};

struct candidate {
  std::string name;  ///< "short spans"
  std::vector<field_change> changes;
  bool gains_outside_malloc = false;  ///< the program's own accesses: no replay shows that
};

/// All changes of these, in their order. One that would change a field to another value than one
/// before it is left out.
candidate combined(const std::vector<candidate>& parts);

/// The header: `comment`, a line each, then the recipe called `fitted`.
std::string header_of(const candidate& what, const std::vector<std::string>& comment);

/// Bytes as C++ has them: "256 * heapwright::KiB".
std::string bytes_in_code(std::uint64_t bytes);

}  // namespace heapwright::tool
