// Which recipes a header defines, without a compiler.
//
// Problem     a user gives a header, and mostly no name. The compiler could only say whether a name
//             that is known is that of a recipe.
// Rule        a definition is `recipe NAME =` or `recipe NAME {` at namespace scope, also after a
//             comma. What is within other braces or within parentheses is none: locals of a lambda,
//             members, parameters. In `namespace x { }` the name is x::NAME.
// Limits      the preprocessor does not run: directives are skipped, and both sides of an #if count.
#pragma once

#include <string>
#include <vector>

namespace heapwright::tool {

/// The words of a piece of C++: names, numbers, "::", single characters. Comments and directives
/// are left out, and a literal is the word "\"".
[[nodiscard]] std::vector<std::string> words_of_code(const std::string& text);

/// Qualified, without a leading "::", in the order in which they stand in the text. O(text).
[[nodiscard]] std::vector<std::string> recipes_in(const std::string& text);

}  // namespace heapwright::tool
