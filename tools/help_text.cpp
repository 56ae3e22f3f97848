#include "help_text.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "wrapped_text.hpp"

namespace heapwright::tool {
namespace {

/// The parser has the kind of a value and what may be in it in one: "UINT:from 2 to 1000".
std::pair<std::string, std::string> kind_and_range(const CLI::Option& option) {
  const std::string both = option.get_type_name();
  const std::size_t colon = both.find(':');
  const std::string kind = both.substr(0, colon);
  return {kind == "UINT" || kind == "INT" || kind == "FLOAT" ? "N" : kind,
          colon == std::string::npos ? "" : both.substr(colon + 1)};
}

}  // namespace

bool is_flag(const CLI::Option& option) { return option.get_expected_min() == 0; }

std::string kind_of_value(const CLI::Option& option) { return kind_and_range(option).first; }

std::string shown_name(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  // A flag that may have a value; the parser knows what it is without one.
  if (option.get_name() == "--stats") return "--stats[=command|all]";
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back('-' + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return fmt::format("{}{}{}", fmt::join(names, ", "), is_flag(option) ? "" : " ",
                     is_flag(option) ? "" : kind_of_value(option));
}

std::string shown_text(const CLI::Option& option) {
  std::vector<std::string> notes;
  if (const std::string range = kind_and_range(option).second; !range.empty()) notes.push_back(range);
  if (!option.get_default_str().empty()) notes.push_back("default " + option.get_default_str());
  for (const CLI::Option* const other : option.get_needs()) notes.push_back("needs " + other->get_name());
  for (const CLI::Option* const other : option.get_excludes()) notes.push_back("not with " + other->get_name());
  if (option.get_required() && !option.get_positional()) notes.emplace_back("required");
  return notes.empty() ? option.get_description()
                       : fmt::format("{} ({})", option.get_description(), fmt::join(notes, "; "));
}

std::vector<const CLI::Option*> options_in_group(const CLI::App& app, const std::string& group) {
  return app.get_options(
      [&](const CLI::Option* option) { return !option->get_positional() && option->get_group() == group; });
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

namespace {

constexpr std::size_t widest = 110;    ///< longer lines are hard to read
constexpr std::size_t narrowest = 30;  ///< below that the terminal may wrap
constexpr std::size_t name_column = 2;
constexpr std::size_t text_column = 26;

std::string lines_of(const std::string& text, std::size_t width) { return wrapped(text, 0, 0, width); }

/// A name, and beside it, or below where it is long, what it is.
std::string entry(const std::string& name, const std::string& text, std::size_t width) {
  // In a narrow terminal the text has more room below the name.
  const std::size_t column = width < 2 * text_column ? 3 * name_column : text_column;
  const std::string start = std::string(name_column, ' ') + name;
  const bool is_beside = start.size() + 2 <= column;
  const std::string gap = is_beside ? std::string(column - start.size(), ' ') : '\n' + std::string(column, ' ');
  return start + gap + wrapped(text, column, column, width);
}

std::string entries(const std::vector<const CLI::Option*>& options, std::size_t width) {
  std::string text;
  for (const CLI::Option* const option : options) text += entry(shown_name(*option), shown_text(*option), width);
  return text;
}

std::string help_of_all(const CLI::App& app, std::size_t width) {
  std::string text = lines_of(app.get_description(), width) + "\nUsage: heapwright SUBCOMMAND ...\n\n";
  for (const CLI::App* const one : app.get_subcommands({}))
    text += entry(one->get_name(), one->get_description(), width);
  return text + '\n' + entries(options_in_group(app, "Options"), width) + '\n' + lines_of(app.get_footer(), width);
}

std::string help_of_one(const CLI::App& app, std::size_t width) {
  std::string text = lines_of(app.get_description(), width) + '\n' + wrapped("Usage: " + usage_of(app), 0, 7, width) +
                     '\n' + entries(positionals_of(app), width);
  for (const std::string& group : app.get_groups())
    if (const auto options = options_in_group(app, group); !options.empty())
      text += fmt::format("\n{}:\n{}", group, entries(options, width));
  return text + '\n' + lines_of(app.get_footer(), width);
}

}  // namespace

std::string usage_of(const CLI::App& app) {
  std::string text = fmt::format("heapwright {} [OPTIONS]", app.get_name());
  for (const CLI::Option* const option : app.get_options())
    if (option->get_required() && !option->get_positional())
      text += fmt::format(" {} {}", option->get_name(), kind_of_value(*option));
  for (const CLI::Option* const option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name() + (option->get_expected_max() > 1 ? " [ARGUMENTS]" : "");
    text += option->get_required() ? " " + name : fmt::format(" [{}]", name);
  }
  return text;
}

help_text::help_text(unsigned columns)
    : width_(columns == 0 ? widest : std::clamp<std::size_t>(columns - 1, narrowest, widest)) {}

std::string help_text::make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode /*mode*/) const {
  return app->get_parent() == nullptr ? help_of_all(*app, width_) : help_of_one(*app, width_);
}

}  // namespace heapwright::tool
