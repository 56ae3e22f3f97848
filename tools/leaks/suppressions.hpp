// Leaks that a person knows of and does not want to be told: by the names of functions.
//
// A pattern is a function's name, as the report shows it, with or without its parameters; `*` stands for anything, `?`
// for one character. A call stack is suppressed if any function in it has such a name.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace heapwright::tool {

class suppressions {
 public:
  void add(std::string pattern) { patterns_.push_back(std::move(pattern)); }
  /// A pattern a line; empty lines and those that begin with # are passed over. Throws `failure`.
  void add_file(const std::string& path);

  /// The pattern that this function's name fits; null: none.
  [[nodiscard]] const std::string* find(const std::string& function) const;

  [[nodiscard]] const std::vector<std::string>& patterns() const noexcept { return patterns_; }

 private:
  std::vector<std::string> patterns_;
};

}  // namespace heapwright::tool
