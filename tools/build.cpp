// `heapwright build`: a drop-in malloc from a recipe of the user's own.
//
// What is compiled is the source of libheapwright, with the user's header read first (malloc/chosen_recipe.hpp says how):
//   look     which recipe the header defines
//   check    the header and the recipe's static_asserts alone, so that what is wrong with it is said in their sentences
//   compile  each source, several at once, into a folder that goes away whatever happens
//   link     to a file beside the result, which takes its name only when it is whole
//   try      if asked: the conformance and stress tests of this installation, on the new library; where memory is limited, on one
//            made without the limit, and the limit by itself
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "commands.hpp"
#include "compiler.hpp"
#include "descriptor.hpp"
#include "elf_file.hpp"
#include "failure.hpp"
#include "measured_run.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

namespace files = std::filesystem;

/// Goes away with all that is in it.
class scratch_folder {
 public:
  scratch_folder() : path_(scratch_place() + "/heapwright-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr)
      throw failure(exit_code::bad_input, fmt::format("cannot make a folder {}: {}", path_, std::strerror(errno)));
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    files::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return fmt::format("{}/{}", path_, name); }

 private:
  std::string path_;
};

/// While it lives, what would end this process is noted, so that nothing is left behind; then it ends it.
class interruptible {
 public:
  interruptible() {
    struct sigaction ours {};
    ours.sa_handler = [](int number) { noted_ = number; };
    for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &ours, &before_[i]);
  }
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;
  ~interruptible() {
    for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_[i], nullptr);
    if (noted_ != 0) raise(noted_);
  }

  [[nodiscard]] static bool is_noted() { return noted_ != 0; }

 private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  static inline volatile std::sig_atomic_t noted_ = 0;
  struct sigaction before_[std::size(signals)]{};
};

std::string folder_of_this_program() { return files::read_symlink("/proc/self/exe").parent_path(); }

struct sources {
  std::string headers;
  std::string malloc;
};

/// Those installed with this program, or those it was built from.
sources find_sources() {
  const files::path here = folder_of_this_program();
  for (const auto& [headers, malloc] :
       {sources{here / "../" HEAPWRIGHT_INCLUDEDIR, here / "../" HEAPWRIGHT_DATADIR "/heapwright/malloc"},
        sources{HEAPWRIGHT_SOURCE_DIR "/include", HEAPWRIGHT_SOURCE_DIR "/malloc"}}) {
    if (files::exists(files::path(malloc) / "process_heap.cpp") &&
        files::exists(files::path(headers) / "heapwright/heap/recipe.hpp"))
      return {files::weakly_canonical(headers), files::weakly_canonical(malloc)};
  }
  throw failure(exit_code::bad_input,
                fmt::format("the sources of the malloc are not in {}; install heapwright as a whole (cmake --install)",
                            (here / "../" HEAPWRIGHT_DATADIR "/heapwright").lexically_normal().string()));
}

std::string read_header(const std::string& path) {
  if (files::is_directory(path)) throw failure(exit_code::bad_input, fmt::format("{} is a folder, not a header", path));
  const auto text = read_file(path);
  if (!text) throw failure(exit_code::bad_input, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  return *text;
}

std::string without_comments(const std::string& text) {
  std::string code;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_line = text.compare(at, 2, "//") == 0;
    if (!is_line && text.compare(at, 2, "/*") != 0) {
      code += text[at++];
      continue;
    }
    at = is_line ? text.find('\n', at) : text.find("*/", at + 2) + 2;
    if (at < 2 || at == std::string::npos) break;  // not ended
    code += ' ';
  }
  return code;
}

/// The name of the one recipe that a header defines.
std::string find_recipe(const std::string& header, const std::string& text) {
  static const std::regex definition(R"(\brecipe\s+([A-Za-z_]\w*)\s*[={])");
  const std::string code = without_comments(text);
  std::vector<std::string> names;
  for (std::sregex_iterator it(code.begin(), code.end(), definition), end; it != end; ++it) names.push_back((*it)[1]);
  if (names.size() == 1) return names.front();
  if (names.empty())
    throw failure(
        exit_code::bad_input,
        fmt::format("{} defines no recipe. It should say: inline constexpr heapwright::recipe NAME = {{...}};\n"
                    "If another header that it includes does, say which: --recipe NAME",
                    header));
  throw failure(exit_code::bad_input, fmt::format("{} defines several recipes: {}; say which: --recipe NAME", header,
                                                  fmt::join(names, ", ")));
}

std::vector<std::string> words_of(const char* line) {
  std::istringstream input(line);
  return {std::istream_iterator<std::string>(input), {}};
}

void progress(const std::string& text) {
  if (can_draw(STDERR_FILENO)) tell("\r  {:60}\r", text);
}

void write_source(const std::string& path, const std::string& text) {
  std::FILE* const out = std::fopen(path.c_str(), "w");
  if (out == nullptr) throw failure(exit_code::bad_input, fmt::format("{}: {}", path, std::strerror(errno)));
  const bool is_written = std::fputs(text.c_str(), out) >= 0;
  if (std::fclose(out) != 0 || !is_written)
    throw failure(exit_code::bad_input, fmt::format("could not write all of {}: {}", path, std::strerror(errno)));
}

/// What the compiler says of some code after the header.
compiler_result probe(const compiler& with, std::vector<std::string> arguments, const std::string& code,
                      const scratch_folder& scratch) {
  const std::string file = scratch.file("check.cpp");
  write_source(file, fmt::format("#include <heapwright/heap/class_table.hpp>\n{}\n", code));
  arguments.insert(arguments.end(), {"-fsyntax-only", file});
  return with.run({{arguments}}).front();
}

void check(const compiler& with, const std::string& header, const std::string& name,
           const std::vector<std::string>& arguments, const scratch_folder& scratch) {
  progress("checking the recipe");
  // First the header alone: of what is made from a wrong one, the compiler has too much to say.
  for (const char* const code :
       {"constexpr const heapwright::recipe& checked = ::{};", "template class heapwright::class_table<::{}>;"}) {
    const compiler_result result = probe(with, arguments, fmt::format(fmt::runtime(code), name), scratch);
    if (result.good) continue;
    if (without_comments(read_header(header)).find(name) == std::string::npos)
      throw failure(exit_code::bad_input, fmt::format("{} defines no recipe named {}", header, name));
    throw failure(exit_code::bad_input,
                  fmt::format("{}: {} cannot be built:{}", header, name, recipe_errors(result.complaints)));
  }
}

void must_be_good(const std::vector<compiler_result>& results) {
  for (const compiler_result& result : results) {
    if (!result.good)
      throw failure(exit_code::bad_input, "the malloc cannot be compiled:" + recipe_errors(result.complaints));
  }
}

/// The programs that try a malloc, installed or of this build.
std::string find_trial(const std::string& name) {
  const files::path here = folder_of_this_program();
  for (const auto& path : {here / "../" HEAPWRIGHT_LIBEXECDIR "/heapwright" / name, here / name}) {
    if (files::exists(path)) return files::weakly_canonical(path);
  }
  throw failure(exit_code::bad_input,
                fmt::format("{}, which --check runs, is not here: this copy was built without its tests", name));
}

/// Compiles and links all of the malloc. `recipe_arguments` name the recipe.
void make_library(const compiler& with, const sources& from, const std::vector<std::string>& recipe_arguments,
                  const std::string& library, const scratch_folder& scratch) {
  std::vector<compiler_run> compilations;
  std::vector<std::string> link = words_of(HEAPWRIGHT_MALLOC_LINK_OPTIONS);
  const auto add = [&](const char* all, const char* optimisation) {
    for (const std::string& source : words_of(all)) {
      const std::string object = scratch.file(fmt::format("{}.o", compilations.size()));
      std::vector<std::string> arguments = recipe_arguments;
      for (const std::string& word : words_of(HEAPWRIGHT_MALLOC_COMPILE_OPTIONS)) arguments.push_back(word);
      arguments.insert(arguments.end(), {optimisation, "-c", fmt::format("{}/{}", from.malloc, source), "-o", object});
      compilations.push_back({arguments});
      link.push_back(object);
    }
  };
  add(HEAPWRIGHT_MALLOC_FAST_SOURCES, "-O2");
  add(HEAPWRIGHT_MALLOC_SMALL_SOURCES, "-Os");
  add(HEAPWRIGHT_MALLOC_SHARED_SOURCES, "-O2");
  const auto count = compilations.size();
  must_be_good(
      with.run(compilations, [&](std::size_t done) { progress(fmt::format("compiled {} of {}", done, count)); }));

  progress("linking");
  link.insert(link.end(), {"-shared", "-o", library});
  if (const compiler_result linked = with.run({{link}}).front(); !linked.good)
    throw failure(exit_code::bad_input,
                  fmt::format("the malloc cannot be linked as {}:\n{}", library, linked.complaints));
}

/// What a library was made of.
struct made_of {
  const compiler& with;
  const sources& from;
  const std::vector<std::string>& arguments;
  const std::string& recipe;
  const std::string& header;
};

/// recipe.pages.limit, which only the compiler knows.
std::uint64_t limit_of(const made_of& what, const scratch_folder& scratch) {
  const std::string source = scratch.file("limit.cpp"), object = scratch.file("limit.so");
  write_source(
      source,
      fmt::format("extern \"C\" {{ extern const unsigned long heapwright_limit = ::{}.pages.limit; }}\n", what.recipe));
  std::vector<std::string> arguments = what.arguments;
  arguments.insert(arguments.end(), {"-fPIC", "-shared", source, "-o", object});
  must_be_good(what.with.run({{arguments}}));
  const auto made = elf_file::open(object);
  const std::string bytes = made ? made->content("heapwright_limit") : "";
  std::uint64_t limit = UINT64_MAX;
  if (bytes.size() == sizeof limit) std::memcpy(&limit, bytes.data(), sizeof limit);
  return limit;
}

/// The same malloc without its limit: what conformance and stress ask for may be more.
std::string without_limit(const made_of& what, const scratch_folder& scratch) {
  const std::string header = scratch.file("without_limit.hpp");
  std::string library = scratch.file("without_limit.so");
  write_source(
      header,
      fmt::format(
          "#pragma once\n#include \"{}\"\ninline constexpr heapwright::recipe heapwright_without_limit = [] {{\n"
          "  heapwright::recipe r = ::{};\n  r.pages.limit = UINT64_MAX;\n  return r;\n}}();\n",
          what.header, what.recipe));
  std::vector<std::string> arguments = what.arguments;
  for (std::string& word : arguments) {
    if (word == what.header) word = header;
    if (word == fmt::format("-DHEAPWRIGHT_RECIPE=::{}", what.recipe))
      word = "-DHEAPWRIGHT_RECIPE=::heapwright_without_limit";
  }
  make_library(what.with, what.from, arguments, library, scratch);
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

void try_out(const std::string& library, const made_of& what, const scratch_folder& scratch) {
  const std::string is_aligned =
      fmt::format("static_assert(heapwright::class_table<::{}>::natural_alignment == 16);", what.recipe);
  if (!probe(what.with, what.arguments, is_aligned, scratch).good) setenv("HEAPWRIGHT_ALIGNED_TO_8", "1", 1);
  const std::uint64_t limit = limit_of(what, scratch);
  const bool is_limited = limit != UINT64_MAX;
  const std::string tried = is_limited ? without_limit(what, scratch) : library;
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
    progress(fmt::format("trying it: {}", name));
    const run_result result =
        run_measured({one.command, one.library, nullptr, 300}, awaited_signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP});
    if (const std::string trouble = result.trouble(); !trouble.empty())
      throw failure(exit_code::judged_no,
                    fmt::format("{} was built, but its trial {} {}: {}", library, name, trouble, what_failed(result)));
  }
}

}  // namespace

int build(const build_options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string header = files::absolute(options.header);
  const std::string name =
      options.recipe.empty() ? find_recipe(options.header, read_header(header)) : (read_header(header), options.recipe);
  const files::path library = files::absolute(options.output);
  if (!files::is_directory(library.parent_path()))
    throw failure(exit_code::bad_input, fmt::format("{}: its folder does not exist", options.output));
  if (files::exists(library) && !files::is_regular_file(library))
    throw failure(exit_code::bad_input,
                  fmt::format("{} is there and is no file that could be replaced", options.output));
  if (access(library.parent_path().c_str(), W_OK) != 0)
    throw failure(exit_code::bad_input,
                  fmt::format("{}: its folder cannot be written to: {}", options.output, std::strerror(errno)));
  if (options.check) find_trial("malloc_conformance");
  const sources from = find_sources();
  const compiler with(options.compiler, interruptible::is_noted);
  const interruptible guard;
  const scratch_folder scratch;

  std::vector<std::string> common = {"-std=c++20",
                                     fmt::format("-I{}", from.headers),
                                     fmt::format("-I{}", from.malloc),
                                     "-include",
                                     header,
                                     fmt::format("-DHEAPWRIGHT_RECIPE=::{}", name),
                                     "-DHEAPWRIGHT_CHECKS=0",
                                     fmt::format("-DHEAPWRIGHT_VERSION=\"{}\"", HEAPWRIGHT_VERSION),
                                     fmt::format("-DHEAPWRIGHT_BUILD=\"recipe {:.24}\"", name)};
  check(with, options.header, name, common, scratch);

  const std::string unfinished = fmt::format("{}.unfinished", library.string());
  try {
    make_library(with, from, common, unfinished, scratch);
  } catch (...) {
    std::error_code ignored;
    files::remove(unfinished, ignored);
    throw;
  }
  std::error_code error;
  files::rename(unfinished, library, error);
  if (error) {
    files::remove(unfinished);
    throw failure(exit_code::bad_input, fmt::format("cannot write {}: {}", options.output, error.message()));
  }
  if (options.check) try_out(library, {with, from, common, name, header}, scratch);
  progress("");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  answer("{}: a malloc from {} of {}{}, {} KiB, {:.0f} s\n", options.output, name, options.header,
         options.check ? ", tried and good" : "", files::file_size(library) / 1024, took.count());
  if (library.string().find_first_of(": \t\n") != std::string::npos) {
    answer("  LD_PRELOAD cannot express this path: run programs with a link to it that has no space or colon\n");
  } else {
    answer("  heapwright run --with {} -- PROGRAM\n",
           options.output.find('/') == std::string::npos ? fmt::format("./{}", options.output) : options.output);
  }
  return 0;
}

}  // namespace heapwright::tool
