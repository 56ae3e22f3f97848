// Searching text line by line with a regular expression (ECMAScript), as users give one.
//
// std::regex needs stack in proportion to the text it looks at. So a line counts up to its first
// `longest_line` bytes only.
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace heapwright::tool {

inline constexpr std::size_t longest_line = 4000;

/// Throws `failure` for what is no regular expression. `option` names it in the message.
std::regex checked_regex(const std::string& option, const std::string& expression);

/// The whole match and its groups, from the first line that matches; empty if none does. Lines end
/// with a line feed or a carriage return: with the latter, programs rewrite a line of a terminal.
std::vector<std::string> find_line(std::string_view text, const std::regex& pattern);

}  // namespace heapwright::tool
