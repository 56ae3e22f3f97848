#include "candidate.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heapwright::tool {
namespace {

/// Lines of a comment, to 100 columns.
std::string wrapped(const std::string& text, const std::string& indentation) {
  std::string all, line = indentation + "//";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > 100) {
      all += line + '\n';
      line = indentation + "//";
    }
    line += ' ' + word;
  }
  return all + line + '\n';
}

}  // namespace

candidate combined(const std::vector<candidate>& parts) {
  candidate all;
  std::vector<std::string> names;
  const auto known = [&](const field_change& change) {
    return std::ranges::find(all.changes, change.field, &field_change::field);
  };
  for (const candidate& part : parts) {
    const bool contradicts = std::ranges::any_of(part.changes, [&](const field_change& change) {
      return known(change) != all.changes.end() && known(change)->value != change.value;
    });
    if (contradicts) continue;
    names.push_back(part.name);
    all.gains_outside_malloc = all.gains_outside_malloc || part.gains_outside_malloc;
    for (const field_change& change : part.changes)
      if (known(change) == all.changes.end()) all.changes.push_back(change);
  }
  all.name = fmt::format("{}", fmt::join(names, " + "));
  return all;
}

std::string header_of(const candidate& what, const std::vector<std::string>& comment) {
  std::string text;
  for (const std::string& line : comment) text += wrapped(line, "");
  text +=
      "#pragma once\n\n#include <heapwright/heap/recipe.hpp>\n\n"
      "inline constexpr heapwright::recipe fitted = [] {\n  heapwright::recipe r;\n";
  std::string told;
  for (const field_change& change : what.changes) {
    if (change.reason != told) text += wrapped(change.reason, "  ");
    told = change.reason;
    text += fmt::format("  r.{} = {};\n", change.field, change.value);
  }
  return text + "  return r;\n}();\n";
}

std::string bytes_in_code(std::uint64_t bytes) {
  if (bytes > 0 && bytes % (1 << 20) == 0) return fmt::format("{} * heapwright::MiB", bytes >> 20);
  if (bytes > 0 && bytes % (1 << 10) == 0) return fmt::format("{} * heapwright::KiB", bytes >> 10);
  return fmt::format("{}", bytes);
}

}  // namespace heapwright::tool
