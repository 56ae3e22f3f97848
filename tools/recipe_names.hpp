// Which recipes a header defines, without a compiler.
//
// Problem     a user gives a header, and mostly no name. The compiler could only say whether a name
//             that is known is that of a recipe.
// Rule        a definition is `recipe NAME =`, `recipe NAME {` or `auto NAME = recipe{` at
//             namespace scope, the first two also after a comma. In `namespace x { }` the name is
//             x::NAME. Static members of classes, CLASS::NAME, are told apart. What is within other
//             braces or within parentheses is none: locals of a lambda, parameters. Templates are
//             none.
// Limits      the preprocessor does not run: directives are skipped, and both sides of an #if
//             count, but not what is within `#if 0`.
#pragma once

#include <string>
#include <vector>

namespace heapwright::tool {

/// The words of a piece of C++: names, numbers, "::", single characters. Comments and directives
/// are left out, and a literal is the word "\"".
[[nodiscard]] std::vector<std::string> words_of_code(const std::string& text);

/// Qualified names, without a leading "::", in the order in which they stand in the text.
struct found_recipes {
  std::vector<std::string> at_namespace_scope;
  std::vector<std::string> members;  ///< static, of classes
};

/// O(text).
[[nodiscard]] found_recipes recipes_in(const std::string& text);

}  // namespace heapwright::tool
