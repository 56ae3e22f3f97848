// Expressions are matched line by line: std::regex needs stack in proportion to the text.
#include "driver_figure.hpp"

#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "line_search.hpp"
#include "printable.hpp"

namespace heapwright::tool {
namespace {

failure bad_figure(const std::string& option, const std::string& why) {
  return {exit_code::bad_input, fmt::format("--figure {}: {}", printable(option, 100), why)};
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

driver_figure::driver_figure(const std::string& option) {
  const auto equals = option.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == option.size())
    throw bad_figure(option, "say NAME=REGEX or NAME=json:POINTER");
  name_ = option.substr(0, equals);
  place_ = option.substr(equals + 1);
  if (const auto colon = name_.rfind(':'); colon != std::string::npos) {
    const std::string better = name_.substr(colon + 1);
    if (better != "higher" && better != "lower")
      throw bad_figure(option, fmt::format("after the colon of the name stands higher or lower, not {}", better));
    higher_is_better_ = better == "higher";
    name_.erase(colon);
  }
  if (name_.find_first_not_of(' ') == std::string::npos || name_.size() > 30 || printable(name_) != name_)
    throw bad_figure(option, "a name has from 1 to 30 bytes, and no control characters");
  if (place_.starts_with("json:")) {
    place_.erase(0, 5);
    try {
      (void)nlohmann::json::json_pointer(place_);
    } catch (const nlohmann::json::exception&) {
      throw bad_figure(option, "a JSON pointer is empty or begins with a slash: json:/results/0/rps");
    }
    return;
  }
  pattern_ = checked_regex("--figure " + name_, place_);
  if (pattern_->mark_count() == 0)
    throw bad_figure(option, "the expression needs a group around the number: rps=([0-9.]+) requests per second");
}

double driver_figure::read_from(const std::string& output) const {
  return pattern_ ? find_in_lines(output) : find_in_json(output);
}

double driver_figure::find_in_lines(const std::string& output) const {
  const auto groups = find_line(output, *pattern_);
  if (groups.empty()) throw no_such_figure(fmt::format("no line of the driver's stdout matches {}", place_));
  const auto value = number(groups[1]);
  if (!value)
    throw no_such_figure(fmt::format("{} found \"{}\", which is no number", place_, printable(groups[1], 60)));
  return *value;
}

double driver_figure::find_in_json(const std::string& output) const {
  const nlohmann::json document = nlohmann::json::parse(output, nullptr, false);
  if (document.is_discarded()) throw no_such_figure("the driver's stdout is not JSON");
  const nlohmann::json::json_pointer pointer(place_);
  if (!document.contains(pointer)) throw no_such_figure(fmt::format("the driver's JSON has nothing at {}", place_));
  const nlohmann::json& found = document.at(pointer);
  if (!found.is_number() || !std::isfinite(found.get<double>()))
    throw no_such_figure(fmt::format("the driver's JSON has no number at {}", place_));
  return found.get<double>();
}

}  // namespace heapwright::tool
