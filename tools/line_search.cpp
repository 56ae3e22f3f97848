#include "line_search.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "failure.hpp"
#include "printable.hpp"

namespace heapwright::tool {

std::regex checked_regex(const std::string& option, const std::string& expression) {
  try {
    return std::regex(expression);
  } catch (const std::regex_error& error) {
    throw failure(exit_code::bad_input, fmt::format("{}: {} is no regular expression (ECMAScript): {}", option,
                                                    printable(expression, 100), error.what()));
  }
}

std::vector<std::string> find_line(std::string_view text, const std::regex& pattern) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
    const std::string_view looked_at = line.substr(0, longest_line);
    std::cmatch match;
    if (std::regex_search(looked_at.data(), looked_at.data() + looked_at.size(), match, pattern))
      return {match.begin(), match.end()};
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

}  // namespace heapwright::tool
