#include "manual_page.hpp"

#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "help_text.hpp"
#include "roff.hpp"

namespace heapwright::tool {

using roff::bold, roff::entry, roff::heading, roff::plain, roff::section;

namespace {

/// What a page is, in its section NAME, begins with a small letter.
std::string begun_small(std::string text) {
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string entries(const std::vector<const CLI::Option*>& options) {
  std::string text;
  for (const CLI::Option* const option : options) text += entry(shown_name(*option), plain(shown_text(*option)));
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string said = app.get_description();
  if (said.ends_with('.')) said.pop_back();
  std::string text = heading("heapwright", 1, said.substr(said.find(": ") + 2));
  text += section("Synopsis") + bold("heapwright") + " SUBCOMMAND ...\n" + section("Subcommands");
  std::string also;
  for (const CLI::App* const one : app.get_subcommands({})) {
    text += entry(one->get_name(), plain(one->get_description() + "."));
    also += fmt::format("{}.BR {} (1)", also.empty() ? "" : " ,\n", plain("heapwright-" + one->get_name()));
  }
  return text + section("Options") + entries(options_in_group(app, "Options")) + section("See also") + also + '\n';
}

std::string manual_page_of(const CLI::App& subcommand) {
  std::string text = heading("heapwright-" + subcommand.get_name(), 1, begun_small(subcommand.get_description()));
  const std::string usage = usage_of(subcommand), name = "heapwright " + subcommand.get_name();
  text += section("Synopsis") + bold(name) + plain(usage.substr(name.size())) + '\n';
  text += section("Arguments") + entries(positionals_of(subcommand));
  for (const std::string& group : subcommand.get_groups())
    if (const auto options = options_in_group(subcommand, group); !options.empty())
      text += section(group) + entries(options);
  constexpr std::string_view exit_code = "Exit code: ";
  const std::string footer = subcommand.get_footer();
  text += section("Exit status") + plain(std::string_view(footer).substr(exit_code.size())) + '\n';
  return text + section("See also") + ".BR heapwright (1)\n";
}

}  // namespace heapwright::tool
