#include "compiler_text.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <regex>
#include <sstream>

#include <fmt/format.h>

namespace heapwright::tool {

std::vector<std::string> compiler_words(const std::string& command) {
  const char* const variable = std::getenv("CXX");
  std::istringstream input(!command.empty() ? command : variable != nullptr ? variable : "");
  std::vector<std::string> words{std::istream_iterator<std::string>(input), {}};
  return words.empty() ? std::vector<std::string>{"c++"} : words;
}

std::string recipe_errors(const std::string& complaints) {
  // GCC: "static assertion failed: SENTENCE"; Clang: "static assertion failed due to requirement
  // '...': SENTENCE", before 16 "static_assert failed due to requirement '...' "SENTENCE"".
  static const std::regex asserted(R"re(static[_ ]assert(?:ion)? failed(?: due to requirement '.*')?:? "?(.*?)"?)re");
  std::vector<std::string> sentences, others;
  std::istringstream lines(complaints);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("error: ");
    if (at == std::string::npos) continue;
    std::smatch match;
    const std::string text = line.substr(at + 7);
    if (std::regex_match(text, match, asserted)) {
      if (std::find(sentences.begin(), sentences.end(), match[1]) == sentences.end()) sentences.push_back(match[1]);
    } else {
      others.push_back(line.size() > 300 ? line.substr(0, 300) + "..." : line);
    }
  }
  constexpr std::size_t most = 10;
  const auto& shown = sentences.empty() ? others : sentences;
  std::string text = shown.empty() ? "\n  the compiler failed without naming an error" + complaints : "";
  for (std::size_t i = 0; i < std::min(most, shown.size()); ++i) text += fmt::format("\n  {}", shown[i]);
  return text;
}

}  // namespace heapwright::tool
