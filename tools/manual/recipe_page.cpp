// The reference is Markdown, made from the comments of the headers (docs/reference). Of it a page
// needs the tables: a heading, "## page_plan", some sentences, and a row for each field or value:
//
//   | `limit` | `std::uint64_t = UINT64_MAX` | bytes in memory for blocks, ... |
//   | `at_once` | what is beyond max_free_resident |
//
// Users write .pages = {.limit = ...}, so the page names a plan by the field of the recipe that
// holds it: pages.limit.
#include "recipe_page.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "roff.hpp"

namespace heapwright::tool {
namespace {

struct row {
  std::string name, value, text;  // value: the type and the default, empty of a value of an enumeration
};

/// A type of the reference.
struct described {
  std::string name, text;
  std::vector<row> rows;
};

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  constexpr std::string_view begin = "| ", between = " | ", end = " |";
  line.remove_prefix(begin.size());
  line.remove_suffix(end.size());
  for (std::size_t at; (at = line.find(between)) != line.npos; line.remove_prefix(at + between.size()))
    cells.emplace_back(line.substr(0, at));
  cells.emplace_back(line);
  return cells;
}

std::string without_ticks(const std::string& cell) {
  return cell.size() > 1 && cell.front() == '`' ? cell.substr(1, cell.size() - 2) : cell;
}

/// Between backticks: bold.
std::string text_of(std::string_view markdown) {
  std::string result;
  for (bool is_code = false; !markdown.empty(); is_code = !is_code) {
    const std::size_t end = std::min(markdown.find('`'), markdown.size());
    const std::string_view part = markdown.substr(0, end);
    if (!part.empty()) result += is_code ? roff::bold(part) : roff::plain(part);
    markdown.remove_prefix(std::min(end + 1, markdown.size()));
  }
  return result;
}

std::vector<described> types_of(const std::string& reference) {
  std::vector<described> types;
  std::istringstream lines(reference);
  bool is_code = false, is_of_function = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      is_code = !is_code;
    } else if (line.starts_with("## ")) {
      types.push_back({line.substr(3), {}, {}});
      is_of_function = false;
    } else if (line.starts_with("### ")) {
      is_of_function = true;
    } else if (line.empty() || is_code || is_of_function || line.starts_with("|---") || line.starts_with("| name |") ||
               line.starts_with("| value |")) {
      continue;
    } else if (!line.starts_with("| ")) {
      types.back().text += line;
    } else if (const auto cells = cells_of(line); cells.size() >= 2) {
      types.back().rows.push_back(
          {without_ticks(cells[0]), cells.size() > 2 ? without_ticks(cells[1]) : "", cells.back()});
    }
  }
  return types;
}

const described& type_named(const std::vector<described>& types, std::string_view name) {
  for (const described& one : types)
    if (one.name == name && !one.rows.empty()) return one;
  throw std::runtime_error(fmt::format("the reference of recipes has no fields of {}", name));
}

/// Of "bool = false", and of "page_plan{}"; empty: no type is said, or no default.
std::string default_of(const row& field) {
  const std::size_t at = field.value.find(" = ");
  return at == std::string::npos ? field.value : field.value.substr(at + 3);
}

std::string fields_of(const described& type, const std::string& path) {
  std::string text;
  for (const row& field : type.rows) {
    if (field.value.starts_with("static ")) continue;  // no field of a recipe, but a number to know
    text += roff::entry(fmt::format("{}{} = {}", path, field.name, default_of(field)), text_of(field.text));
  }
  return text;
}

}  // namespace

std::string recipe_page(const std::string& recipe, const std::string& size_classes) {
  std::vector<described> types = types_of(recipe);
  for (described& one : types_of(size_classes)) types.push_back(std::move(one));
  std::string text = roff::heading("heapwright-recipe", 5, "describes a malloc, or a heap, of your own");
  text += roff::section("Synopsis") + ".nf\n" + roff::plain("#include <heapwright/heap/recipe.hpp>") + '\n' +
          roff::plain("inline constexpr heapwright::recipe mine = {.FIELD = {.FIELD = VALUE, ...}, ...};") + "\n\n" +
          roff::bold("heapwright build recipe.hpp -o libmine.so") + "\n.fi\n";
  const described& whole = type_named(types, "recipe");
  std::string order;
  for (const row& field : whole.rows) order += (order.empty() ? "" : ", ") + field.name;
  text += roff::section("Description") + text_of(whole.text) +
          roff::plain(fmt::format(" Each field has a default: that of libheapwright. C++ wants them in the order that "
                                  "they have in the structure: {}.\n",
                                  order));
  std::string plans, alone;
  for (const row& field : whole.rows) {
    constexpr std::string_view of_plan = "_plan{}";
    const std::string type = default_of(field);
    if (!type.ends_with(of_plan)) {
      alone += roff::entry(fmt::format("{} = {}", field.name, type), text_of(field.text));
      continue;
    }
    const described& plan = type_named(types, type.substr(0, type.size() - 2));
    plans += roff::section(field.name) + text_of(plan.text) + '\n' + fields_of(plan, field.name + ".");
  }
  text += plans + roff::section("Fields of no group") + alone;
  for (const described& type : types) {
    if (type.rows.empty() || !type.rows[0].value.empty()) continue;
    text += roff::section(type.name) + text_of(type.text) + '\n';
    for (const row& value : type.rows) text += roff::entry(value.name, text_of(value.text));
  }
  return text + roff::section("See also") + ".BR heapwright\\-build (1),\n.BR heapwright\\-fit (1)\n";
}

}  // namespace heapwright::tool
