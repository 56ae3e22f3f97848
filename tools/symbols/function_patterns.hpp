// Sets of functions, by patterns of their names.
//
// A pattern is a function's name, as reports show it, with or without its parameters; `*` stands
// for anything, `?` for one character.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heapwright::tool {

class function_patterns {
 public:
  void add(std::string pattern) { patterns_.push_back(std::move(pattern)); }
  /// A pattern a line; empty lines and those that begin with # are passed over. Throws `failure`.
  void add_file(const std::string& path);

  /// The first pattern that this function's name fits; null: none. O(patterns).
  [[nodiscard]] const std::string* find(const std::string& function) const;

  [[nodiscard]] const std::vector<std::string>& patterns() const noexcept { return patterns_; }

 private:
  std::vector<std::string> patterns_;
};

/// Whether a name fits one pattern.
[[nodiscard]] bool fits_pattern(std::string_view pattern, std::string_view name);

}  // namespace heapwright::tool
