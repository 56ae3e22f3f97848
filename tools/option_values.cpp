#include "option_values.hpp"

#include <algorithm>
#include <iterator>

namespace heapwright::tool {
namespace {

constexpr const char* goals[] = {"time", "memory", "both", "latency"};

/// The parser takes a number that begins with 0 for octal.
void remove_leading_zeros(std::string& word) {
  const std::size_t digit = std::min(word.find_first_not_of('0'), word.size());
  const bool is_decimal = digit < word.size() && word[digit] >= '1' && word[digit] <= '9';
  if (is_decimal) word.erase(0, digit);
}

}  // namespace

CLI::Validator size_in_bytes() {
  const auto check = [](std::string& word) {
    const std::string given = word;
    remove_leading_zeros(word);
    try {
      if (given.find('-') == std::string::npos && CLI::AsSizeValue(true)(word).empty() && word != "0")
        return std::string();
    } catch (const CLI::ValidationError&) {
    }
    return fmt::format("'{}' is no size such as 100000, 100KiB or 2MB", given);
  };
  return {check, ""};
}

CLI::Validator process_id() {
  const auto check = [](std::string& word) {
    remove_leading_zeros(word);
    return check_process_id(word);
  };
  return {check, ""};
}

std::string check_process_id(const std::string& word) {
  pid_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end && number > 0 ? "" : fmt::format("'{}' is no process id", word);
}

std::string check_statistics(const std::string& word) {
  return word == "command" || word == "all" ? "" : fmt::format("'{}' is not one of its values, command and all", word);
}

std::string check_sample(const std::string& word) {
  if (word == "auto") return "";
  std::string is_no_number = word;
  const std::string complaint = from_to(0, std::uint64_t{1} << 40)(is_no_number);
  return complaint.empty() ? "" : complaint + ", nor auto";
}

std::string check_names(const std::string& list) {
  return std::ranges::any_of(split_names(list), &std::string::empty) ? "a name in the list is empty" : "";
}

std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(CLI::detail::trim_copy(list.substr(begin, end - begin)));
    if (end == list.size()) return names;
    begin = end + 1;
  }
}

std::string check_goal(const std::string& word) {
  return std::ranges::find(goals, word) == std::end(goals)
             ? fmt::format("'{}' is none of time, memory, both and latency", word)
             : "";
}

fit_goal goal_named(const std::string& word) {
  return static_cast<fit_goal>(std::ranges::find(goals, word) - std::begin(goals));
}

}  // namespace heapwright::tool
