#include "wrapped_text.hpp"

#include <sstream>

namespace heapwright::tool {

std::string wrapped(const std::string& text, std::size_t column, std::size_t indent, std::size_t width) {
  std::string result;
  std::istringstream words(text);
  bool is_first = true;
  for (std::string word; words >> word; is_first = false) {
    const bool is_too_long = width > 0 && column + 1 + word.size() > width;
    if (!is_first && is_too_long) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result + '\n';
}

}  // namespace heapwright::tool
