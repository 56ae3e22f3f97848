#include "function_patterns.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "failure.hpp"

namespace heapwright::tool {
namespace {

std::string trimmed(const std::string& line) {
  constexpr const char* blank = " \t\r";
  const auto begin = line.find_first_not_of(blank);
  return begin == std::string::npos ? std::string() : line.substr(begin, line.find_last_not_of(blank) + 1 - begin);
}

std::string without_parameters(const std::string& function) {
  // The call operator has parentheses in its name.
  const auto call = function.find("operator()");
  return function.substr(0, function.find('(', call == std::string::npos ? 0 : call + std::strlen("operator()")));
}

}  // namespace

// Not fnmatch(3): there, the brackets of `operator[]` would be a set of characters.
bool fits_pattern(std::string_view pattern, std::string_view name) {
  constexpr auto none = std::string_view::npos;
  std::size_t at = 0, in_name = 0, star = none, star_ends = 0;
  while (in_name < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      star_ends = in_name;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[in_name])) {
      ++at;
      ++in_name;
    } else if (star != none) {
      at = star + 1;
      in_name = ++star_ends;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == none;
}

void function_patterns::add_file(const std::string& path) {
  std::ifstream file(path);
  const bool is_folder = std::filesystem::is_directory(path);
  if (!file || is_folder)
    throw failure(exit_code::bad_input,
                  fmt::format("cannot read {}: {}", path, std::strerror(is_folder ? EISDIR : errno)));
  std::string line;
  while (std::getline(file, line))
    if (const std::string pattern = trimmed(line); !pattern.empty() && pattern[0] != '#') add(pattern);
}

const std::string* function_patterns::find(const std::string& function) const {
  const std::string name = without_parameters(function);
  for (const std::string& pattern : patterns_)
    // Where only the name is known, parameters in a pattern say nothing.
    if (fits_pattern(pattern, function) || fits_pattern(pattern, name) ||
        (name == function && fits_pattern(without_parameters(pattern), name)))
      return &pattern;
  return nullptr;
}

}  // namespace heapwright::tool
