// The words by which a compiler is called, and of what it says of a recipe what its author needs.
#pragma once

#include <string>
#include <vector>

namespace heapwright::tool {

/// `command`: as the user gave it; empty for $CXX, or else c++. Never empty.
[[nodiscard]] std::vector<std::string> compiler_words(const std::string& command);

/// The error lines of a compiler's complaints about a recipe: the sentences of its static_asserts
/// alone, if there are any; otherwise every line that says "error:", shortened to what one can
/// read. Each on a line of its own, after a line break.
[[nodiscard]] std::string recipe_errors(const std::string& complaints);

}  // namespace heapwright::tool
