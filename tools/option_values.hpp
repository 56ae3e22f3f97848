// What the values of options may be, in checks that the parser of the command line calls. A check
// returns what is wrong as a sentence without an end, or an empty text.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fit.hpp"

namespace heapwright::tool {

/// A whole number if both bounds are. For CLI::Option::transform: the parser takes 010 for eight,
/// so it gets the number as it was read here. CLI::Option::check would drop that.
template <class T, class U>
CLI::Validator from_to(T least, U most) {
  const std::string range = fmt::format("from {} to {}", least, most);
  const auto check = [=](std::string& word) {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<U>) {
      std::int64_t number = 0;
      const char* const end = word.data() + word.size();
      const auto read = std::from_chars(word.data(), end, number);
      const bool is_in = read.ec == std::errc{} && read.ptr == end && number >= static_cast<std::int64_t>(least) &&
                         number <= static_cast<std::int64_t>(most);
      if (!is_in) return fmt::format("'{}' is not a whole number {}", word, range);
      word = std::to_string(number);
      return std::string();
    } else {
      double number = 0;
      const bool is_number = CLI::detail::lexical_cast(word, number);
      const bool is_in = is_number && number >= static_cast<double>(least) && number <= static_cast<double>(most);
      return is_in ? std::string() : fmt::format("'{}' is not a number {}", word, range);
    }
  };
  return {check, range};
}

/// Bytes, also as 100KiB or 2MB. For CLI::Option::transform.
CLI::Validator size_in_bytes();

/// For CLI::Option::transform, as from_to is.
CLI::Validator process_id();

std::string check_process_id(const std::string& word);
std::string check_statistics(const std::string& word);

/// Of --sample.
std::string check_sample(const std::string& word);

/// A list with commas between its names: no name may be empty.
std::string check_names(const std::string& list);

/// Of names with commas and spaces between them.
std::vector<std::string> split_names(const std::string& list);

std::string check_goal(const std::string& word);

/// Of a word that passes check_goal.
fit_goal goal_named(const std::string& word);

}  // namespace heapwright::tool
