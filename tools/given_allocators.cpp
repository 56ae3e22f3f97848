#include "given_allocators.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "failure.hpp"
#include "loader.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

/// LD_PRELOAD cannot express the colons of "x::mine".
std::string library_name(std::string recipe) {
  std::ranges::replace(recipe, ':', '_');
  return fmt::format("lib{}.so", recipe);
}

}  // namespace

given_allocators::given_allocators(const char* subcommand, const std::vector<std::string>& words) {
  if (std::ranges::any_of(words, [](const auto& word) { return is_header(given_path::parse(word).path); }))
    guard_.emplace();
  for (const std::string& word : words) {
    const given_path given = given_path::parse(word);
    if (!is_header(given.path)) {
      all_.push_back(allocator_at(given));
      continue;
    }
    const recipe_build& recipe = *recipes_.emplace_back(std::make_unique<recipe_build>(
        given.path, "", "",
        fmt::format("build one, heapwright build {} --recipe NAME -o libmine.so, and {} --with ./libmine.so",
                    given.path, subcommand)));
    const std::string& name = given.name.empty() ? recipe.name() : given.name;
    tell("heapwright: building {} from {}\n", recipe.name(), given.path);
    const std::string library = recipe.scratch().file(library_name(recipe.name()));
    try {
      recipe.check();
      recipe.make(library);
    } catch (const failure&) {
      show_step("");
      // The guard ends this process before main could tell.
      if (interruptible::is_noted())
        tell("heapwright: interrupted while {} was built: nothing has run\n", recipe.name());
      throw;
    }
    show_step("");
    all_.push_back({name, library_path(library), fmt::format("{} of {}", recipe.name(), given.path)});
  }
  if (guard_ && interruptible::is_noted()) throw failure(exit_code::bad_input, "interrupted");
}

}  // namespace heapwright::tool
