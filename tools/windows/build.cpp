// `heapwright build`: a malloc from a recipe of the user's own, for programs of Windows.
//
// ../recipe_build.hpp makes it, in a file beside the result, which takes its name when it is whole.
#include <chrono>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "../recipe_build.hpp"
#include "../terminal.hpp"
#include "command.hpp"
#include "ctrl_c.hpp"

namespace heapwright::tool {
namespace {

namespace files = std::filesystem;

struct build_options {
  std::string header, output, recipe, compiler;
};

build_options read_options(const words& given) {
  build_options options;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::wstring& word = given[i];
    std::string* const value = word == L"-o" || word == L"--output" ? &options.output
                               : word == L"--recipe"                ? &options.recipe
                               : word == L"--compiler"              ? &options.compiler
                                                                    : nullptr;
    if (value != nullptr) {
      if (++i == given.size() || given[i].empty())
        throw failure(exit_code::bad_words, "build: " + narrow(word) + " needs a value");
      *value = narrow(given[i]);
    } else if (word.starts_with(L"-")) {
      throw failure(exit_code::bad_words, "build: unknown option " + narrow(word));
    } else if (!options.header.empty()) {
      throw failure(exit_code::bad_words, "build: one recipe at a time; unknown word " + narrow(word));
    } else {
      options.header = narrow(word);
    }
  }
  if (options.header.empty()) throw failure(exit_code::bad_words, "build: which recipe? Give its header");
  if (options.output.empty()) throw failure(exit_code::bad_words, "build: where to? Give -o LIBRARY.dll");
  return options;
}

/// Goes with this object, unless it has taken its name.
class unfinished_file {
 public:
  explicit unfinished_file(const files::path& target)
      : target_(target), path_(path_of(fmt::format("{}.{}.unfinished", name_of(target), ::GetCurrentProcessId()))) {}
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;
  ~unfinished_file() {
    std::error_code ignored;
    files::remove(path_, ignored);
  }

  [[nodiscard]] std::string path() const { return name_of(path_); }

  void take_name() const {
    if (::MoveFileExW(path_.c_str(), target_.c_str(), MOVEFILE_REPLACE_EXISTING) == 0)
      throw failure(exit_code::bad_input, fmt::format("cannot write {}: {}; is it loaded into a process?",
                                                      name_of(target_), message_of(::GetLastError())));
  }

 private:
  files::path target_, path_;
};

}  // namespace

int build(const words& given) {
  const build_options options = read_options(given);
  const auto begin = std::chrono::steady_clock::now();
  const awaited_ctrl_c guard;
  const recipe_build recipe(options.header, options.recipe, options.compiler,
                            "say which: heapwright build --recipe NAME");
  const files::path library = files::absolute(path_of(options.output));
  recipe.check_place(options.output, name_of(library));
  try {
    recipe.check();
    const unfinished_file unfinished(library);
    recipe.make(unfinished.path());
    unfinished.take_name();
  } catch (const interrupted&) {
    show_step("");
    tell("heapwright: interrupted: {} is {}\n", options.output, files::exists(library) ? "as it was" : "not made");
    throw;
  }
  show_step("");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const char* const quote = options.output.find(' ') == options.output.npos ? "" : "\"";
  const std::string made = fmt::format(
      "{}: a malloc from {} of {}, {} KiB, {:.0f} s\n  heapwright run --with {}{}{} -- PROGRAM\n", options.output,
      recipe.name(), options.header, files::file_size(library) / 1024, took.count(), quote, options.output, quote);
  std::fputs(made.c_str(), stdout);
  return 0;
}

}  // namespace heapwright::tool
