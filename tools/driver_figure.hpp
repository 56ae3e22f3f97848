// A figure that the driver of a server prints: its name, where it stands in the output, and which
// way is better.
#pragma once

#include <optional>
#include <regex>
#include <stdexcept>
#include <string>

namespace heapwright::tool {

/// The output has no such figure. `what()` says why, as the end of a sentence about the figure.
struct no_such_figure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class driver_figure {
 public:
  /// `NAME=REGEX` or `NAME=json:POINTER`; the name may end in `:higher` or `:lower`. Throws
  /// `failure` for anything else.
  explicit driver_figure(const std::string& option);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool higher_is_better() const noexcept { return higher_is_better_; }

  /// From what the driver has written to its stdout. Throws `no_such_figure`.
  [[nodiscard]] double read_from(const std::string& output) const;

 private:
  [[nodiscard]] double find_in_lines(const std::string& output) const;
  [[nodiscard]] double find_in_json(const std::string& output) const;

  std::string name_;
  std::string place_;                  ///< the expression or the JSON pointer, as it was given
  std::optional<std::regex> pattern_;  ///< nothing for a JSON pointer
  bool higher_is_better_ = false;
};

}  // namespace heapwright::tool
