// What this program is, as --version tells.
#pragma once

#include <string>

namespace heapwright::tool {

/// Two lines: "heapwright 0.1.0 (revision 0123456789ab)", and how it was built. The revision is
/// unknown where it was not built from a repository.
std::string version_text();

}  // namespace heapwright::tool
