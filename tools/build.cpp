// `heapwright build`: a drop-in malloc from a recipe of the user's own.
//
// recipe_build.hpp makes it, in a file beside the result, which takes its name only when it is
// whole, and has passed its trials if they were asked for (recipe_trials.hpp).
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "commands.hpp"
#include "failure.hpp"
#include "interruptible.hpp"
#include "loader.hpp"
#include "output_file.hpp"
#include "recipe_build.hpp"
#include "recipe_trials.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

namespace files = std::filesystem;

/// What was there stays until the new one is made and, if so asked, has passed its trials.
void make_library(const files::path& library, const recipe_build& recipe, const build_options& options) {
  const auto tell_interrupted = [&] {
    show_step("");
    tell("heapwright: interrupted: {} is {}\n", options.output, files::exists(library) ? "as it was" : "not made");
  };
  try {
    unfinished_file unfinished(library, 0666);
    if (unfinished.is_open()) recipe.make(unfinished.path());
    if (unfinished.is_open() && options.check) try_out(unfinished.path(), recipe);
    if (!unfinished.is_open() || !unfinished.take_name())
      throw failure(exit_code::bad_input, fmt::format("cannot write {}: {}", options.output, std::strerror(errno)));
  } catch (const interrupted&) {
    tell_interrupted();
    throw;
  } catch (const failure&) {
    if (interruptible::is_noted()) tell_interrupted();
    throw;
  }
}

}  // namespace

int build(const build_options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const interruptible guard;
  const recipe_build recipe(options.header, options.recipe, options.compiler,
                            "say which: heapwright build --recipe NAME");
  const files::path library = followed(options.output);
  recipe.check_place(options.output, library.string());
  if (access(library.parent_path().c_str(), W_OK) != 0)
    throw failure(exit_code::bad_input,
                  fmt::format("{}: its folder cannot be written to: {}", options.output, std::strerror(errno)));
  if (options.check) must_have_trials();
  recipe.check();

  make_library(library, recipe, options);
  show_step("");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  answer("{}: a malloc from {} of {}{}, {} KiB, {:.0f} s\n", options.output, recipe.name(), options.header,
         options.check ? ", tried and good" : "", files::file_size(library) / 1024, took.count());
  if (!can_be_preloaded(library)) {
    answer("  LD_PRELOAD cannot express this path: run programs with a link to it that has no space or colon\n");
  } else {
    answer("  heapwright run --with {} -- PROGRAM\n",
           options.output.find('/') == std::string::npos ? fmt::format("./{}", options.output) : options.output);
  }
  return 0;
}

}  // namespace heapwright::tool
