#include "recipe_trials.hpp"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocators.hpp"
#include "elf_file.hpp"
#include "failure.hpp"
#include "loader.hpp"
#include "measured_run.hpp"
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

/// The library under a path that LD_PRELOAD can express.
std::string preloadable(const std::string& library, const recipe_build& recipe) {
  if (can_be_preloaded(library)) return library;
  std::string link = recipe.scratch().file("tried.so");
  if (!can_be_preloaded(link))
    throw failure(exit_code::bad_input,
                  fmt::format("{}: LD_PRELOAD cannot express a path with a space or a colon; name another folder in "
                              "TMPDIR",
                              link));
  files::create_symlink(files::absolute(library), link);
  return link;
}

/// The tests that failed by name; of a trial that names none, its last words.
std::string what_failed(const run_result& trial) {
  static const std::regex failed(R"(\[  FAILED  \] (\S+) \()");
  const std::string output = trial.output.content();
  std::vector<std::string> names;
  for (std::sregex_iterator it(output.begin(), output.end(), failed), end; it != end; ++it) names.push_back((*it)[1]);
  return names.empty() ? trial.errors.tail(3) : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool has_trials() { return !own_helper("malloc_conformance").empty(); }

void must_have_trials() { find_trial("malloc_conformance"); }

void try_out(const std::string& library, const recipe_build& recipe) {
  const std::string is_aligned = fmt::format(
      "#include <heapwright/heap/class_table.hpp>\n"
      "static_assert(heapwright::class_table<::{}>::natural_alignment == 16);",
      recipe.name());
  if (!recipe.probe(is_aligned).good) setenv("HEAPWRIGHT_ALIGNED_TO_8", "1", 1);
  const std::uint64_t limit = limit_of(recipe);
  const bool is_limited = limit != UINT64_MAX;
  const std::string preloaded = preloadable(library, recipe);
  const std::string tried = is_limited ? without_limit(recipe) : preloaded;
  struct trial {
    std::vector<std::string> command;
    const std::string& library;
  };
  std::vector<trial> trials = {{{find_trial("malloc_conformance"), "--gtest_brief=1"}, tried},
                               {{find_trial("stress"), "1", "300000"}, tried},
                               {{find_trial("stress"), "8", "100000"}, tried}};
  if (is_limited) trials.push_back({{find_trial("malloc_limit"), std::to_string(limit)}, preloaded});
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

}  // namespace heapwright::tool
