// `heapwright build`: a drop-in malloc from a recipe of the user's own.
//
// recipe_build.hpp makes it, in a file beside the result, which takes its name only when it is
// whole. If asked, the conformance and stress tests of this installation try it; where memory is
// limited, they try one made without the limit, and a test of its own tries the limit.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>

#include <fmt/format.h>
#include <unistd.h>

#include "allocators.hpp"
#include "commands.hpp"
#include "elf_file.hpp"
#include "failure.hpp"
#include "loader.hpp"
#include "measured_run.hpp"
#include "output_file.hpp"
#include "recipe_build.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

namespace files = std::filesystem;

/// The programs that try a malloc, installed or of this build.
std::string find_trial(const std::string& name) {
  std::string path = own_helper(name);
  if (!path.empty()) return path;
  throw failure(exit_code::bad_input,
                fmt::format("{}, which --check runs, is not here: this copy was built without its tests", name));
}

/// recipe.pages.limit, which only the compiler knows.
std::uint64_t limit_of(const recipe_build& recipe) {
  const auto made = elf_file::open(recipe.object_of(
      "limit", fmt::format("extern \"C\" {{ extern const unsigned long heapwright_limit = ::{}.pages.limit; }}\n",
                           recipe.name())));
  const std::string bytes = made ? made->content("heapwright_limit") : "";
  std::uint64_t limit = UINT64_MAX;
  if (bytes.size() == sizeof limit) std::memcpy(&limit, bytes.data(), sizeof limit);
  return limit;
}

/// The same malloc without its limit: what conformance and stress ask for may be more.
std::string without_limit(const recipe_build& recipe) {
  const std::string header = recipe.scratch().file("without_limit.hpp");
  std::string library = recipe.scratch().file("without_limit.so");
  write_source(
      header,
      fmt::format(
          "#pragma once\n#include \"{}\"\ninline constexpr heapwright::recipe heapwright_without_limit = [] {{\n"
          "  heapwright::recipe r = ::{};\n  r.pages.limit = UINT64_MAX;\n  return r;\n}}();\n",
          recipe.header(), recipe.name()));
  recipe.make(library, header, "heapwright_without_limit");
  return library;
}

/// The tests that failed by name; of a trial that names none, its last words.
std::string what_failed(const run_result& trial) {
  static const std::regex failed(R"(\[  FAILED  \] (\S+) \()");
  const std::string output = trial.output.content();
  std::vector<std::string> names;
  for (std::sregex_iterator it(output.begin(), output.end(), failed), end; it != end; ++it) names.push_back((*it)[1]);
  return names.empty() ? trial.errors.tail(3) : fmt::format("{}", fmt::join(names, ", "));
}

void try_out(const std::string& library, const recipe_build& recipe) {
  const std::string is_aligned = fmt::format(
      "#include <heapwright/heap/class_table.hpp>\n"
      "static_assert(heapwright::class_table<::{}>::natural_alignment == 16);",
      recipe.name());
  if (!recipe.probe(is_aligned).good) setenv("HEAPWRIGHT_ALIGNED_TO_8", "1", 1);
  const std::uint64_t limit = limit_of(recipe);
  const bool is_limited = limit != UINT64_MAX;
  const std::string tried = is_limited ? without_limit(recipe) : library;
  struct trial {
    std::vector<std::string> command;
    const std::string& library;
  };
  std::vector<trial> trials = {{{find_trial("malloc_conformance"), "--gtest_brief=1"}, tried},
                               {{find_trial("stress"), "1", "300000"}, tried},
                               {{find_trial("stress"), "8", "100000"}, tried}};
  if (is_limited) trials.push_back({{find_trial("malloc_limit"), std::to_string(limit)}, library});
  for (const trial& one : trials) {
    const std::string name = files::path(one.command.front()).filename();
    show_step(fmt::format("trying it: {}", name));
    const run_result result =
        run_measured({one.command, one.library, nullptr, 300}, awaited_signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP});
    if (const std::string trouble = result.trouble(); !trouble.empty())
      throw failure(exit_code::judged_no, fmt::format("the malloc of {} was built, but its trial {} {}: {}",
                                                      recipe.name(), name, trouble, what_failed(result)));
  }
}

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
  if (!files::is_directory(library.parent_path()))
    throw failure(exit_code::bad_input, fmt::format("{}: its folder does not exist", options.output));
  if (files::exists(library) && !files::is_regular_file(library))
    throw failure(exit_code::bad_input,
                  fmt::format("{} is there and is no file that could be replaced", options.output));
  std::error_code no_library;
  if (files::equivalent(library, options.header, no_library))
    throw failure(
        exit_code::bad_input,
        fmt::format("{} is the recipe itself, which the library would replace; give -o another name", options.output));
  if (access(library.parent_path().c_str(), W_OK) != 0)
    throw failure(exit_code::bad_input,
                  fmt::format("{}: its folder cannot be written to: {}", options.output, std::strerror(errno)));
  if (options.check) find_trial("malloc_conformance");
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
