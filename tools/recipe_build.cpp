#include "recipe_build.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler_text.hpp"
#include "recipe_names.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

namespace files = std::filesystem;

std::string read_header(const std::string& path) {
  if (files::is_directory(path_of(path)))
    throw failure(exit_code::bad_input, fmt::format("{} is a folder, not a header", path));
  std::ifstream file(path_of(path), std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    throw failure(exit_code::bad_input, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  return text;
}

/// The advice to give a name, with that name.
std::string with_name(std::string choose, const std::string& name) {
  const auto at = choose.find("--recipe NAME");
  return at == std::string::npos ? choose : choose.replace(at, std::strlen("--recipe NAME"), "--recipe " + name);
}

/// The name of the one recipe that a header defines. `choose`: how the user says which.
std::string find_recipe(const std::string& header, const std::string& text, const std::string& choose) {
  const auto [names, members] = recipes_in(text);
  if (names.size() == 1) return names.front();
  if (names.empty() && !members.empty())
    throw failure(exit_code::bad_input,
                  fmt::format("{} defines no recipe at namespace scope, but {} of a class: {}; {}", header,
                              members.size() == 1 ? "a member" : "members", fmt::join(members, ", "),
                              members.size() == 1 ? with_name(choose, members.front()) : choose));
  if (names.empty())
    throw failure(
        exit_code::bad_input,
        fmt::format("{} defines no recipe. It should say: inline constexpr heapwright::recipe NAME = {{...}};\n"
                    "If another header that it includes does, {}",
                    header, choose));
  throw failure(exit_code::bad_input,
                fmt::format("{} defines several recipes: {}; {}", header, fmt::join(names, ", "), choose));
}

failure no_recipe_named(const std::string& name, const std::string& header, const std::string& text) {
  const auto [names, members] = recipes_in(text);
  std::string others;
  for (const auto* const found : {&names, &members})
    for (const std::string& other : *found) others += (others.empty() ? "; it defines " : ", ") + other;
  return {exit_code::bad_input, fmt::format("{} defines no recipe named {}{}", header, name, others)};
}

/// As a user may write it: "::x::mine" is "x::mine". The compiler says whether it is one; it gets
/// nothing that would end the code around the name.
std::string recipe_named(const std::string& name, const std::string& header, const std::string& text) {
  const auto may_be_in_name = [](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 || std::strchr("_:<>, ", c) != nullptr;
  };
  if (!std::ranges::all_of(name, may_be_in_name)) throw no_recipe_named(name, header, text);
  return name.starts_with("::") ? name.substr(2) : name;
}

/// What the linker says is defined more than once, each once.
std::vector<std::string> defined_twice(const std::string& complaints) {
  // GNU's linkers: multiple definition of `NAME'; lld and mold: duplicate symbol: NAME.
  static const std::regex twice(R"re(multiple definition of [`']([^`']+)'|duplicate symbol: (?:\S+: )*(.+))re");
  std::vector<std::string> names;
  std::istringstream lines(complaints);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, twice)) continue;
    const std::string name = match[1].matched ? match[1] : match[2];
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> words_in(const char* line) {
  std::istringstream input(line);
  return {std::istream_iterator<std::string>(input), {}};
}

std::string last_part(const std::string& name) { return name.substr(name.rfind(':') + 1); }

}  // namespace

void write_source(const std::string& path, const std::string& text) {
  std::ofstream out(path_of(path));
  if (!out.is_open()) throw failure(exit_code::bad_input, fmt::format("{}: {}", path, std::strerror(errno)));
  out << text;
  out.close();
  if (!out)
    throw failure(exit_code::bad_input, fmt::format("could not write all of {}: {}", path, std::strerror(errno)));
}

recipe_build::recipe_build(const std::string& header, const std::string& recipe, const std::string& compiler,
                           const std::string& choose)
    : given_(header),
      header_(name_of(files::absolute(path_of(header)))),
      name_(recipe.empty() ? find_recipe(header, read_header(header), choose)
                           : recipe_named(recipe, header, read_header(header))),
      from_(find_sources()),
      with_(compiler) {}

/// Those installed with this program, or those it was built from.
recipe_build::sources recipe_build::find_sources() {
  const files::path here = path_of(folder_of_this_program());
  const std::string first = words_in(HEAPWRIGHT_MALLOC_FAST_SOURCES).front();
  for (const auto& [headers, malloc] :
       {std::pair{HEAPWRIGHT_HEADERS_FROM_BIN, HEAPWRIGHT_MALLOC_FROM_BIN},
        std::pair{HEAPWRIGHT_SOURCES_FROM_BIN "/include", HEAPWRIGHT_SOURCES_FROM_BIN "/malloc"}}) {
    if (files::exists(here / malloc / first) && files::exists(here / headers / "heapwright/heap/recipe.hpp"))
      return {name_of(files::weakly_canonical(here / headers)), name_of(files::weakly_canonical(here / malloc))};
  }
  throw failure(exit_code::bad_input, fmt::format("the sources of the malloc are not in {}; " HEAPWRIGHT_INSTALL_ADVICE,
                                                  name_of((here / HEAPWRIGHT_MALLOC_FROM_BIN).lexically_normal())));
}

std::vector<std::string> recipe_build::arguments(const std::string& header, const std::string& recipe) const {
  return {"-std=c++20",
          fmt::format("-I{}", from_.headers),
          fmt::format("-I{}", from_.malloc),
          "-include",
          header,
          fmt::format("-DHEAPWRIGHT_RECIPE=::{}", recipe),
          "-DHEAPWRIGHT_CHECKS=0",
          fmt::format("-DHEAPWRIGHT_VERSION=\"{}\"", HEAPWRIGHT_VERSION),
          fmt::format("-DHEAPWRIGHT_BUILD=\"recipe {:.24}\"", name_)};
}

failure recipe_build::not_built(const std::string& why) const {
  return {exit_code::bad_input, fmt::format("{}: {} cannot be built:{}", given_, name_, why)};
}

void recipe_build::must_be_good(const std::vector<compiler_result>& results) const {
  for (const compiler_result& result : results)
    if (!result.good) throw not_built(recipe_errors(result.complaints));
}

compiler_result recipe_build::probe(const std::string& code) const {
  const std::string file = scratch_.file("check.cpp");
  write_source(file, code);
  std::vector<std::string> words = arguments(header_, name_);
  words.insert(words.end(), {"-fsyntax-only", file});
  return with_.run({{words}}).front();
}

std::string recipe_build::object_of(const std::string& name, const std::string& code) const {
  const std::string source = scratch_.file(name + ".cpp");
  std::string object = scratch_.file(name + ".so");
  write_source(source, code);
  std::vector<std::string> words = arguments(header_, name_);
  words.insert(words.end(), {"-fPIC", "-shared", source, "-o", object});
  must_be_good(with_.run({{words}}));
  return object;
}

void recipe_build::check() const {
  show_step("checking the recipe");
  const compiler_result all = probe(fmt::format(
      "#include <heapwright/heap/class_table.hpp>\ntemplate class heapwright::class_table<::{}>;\n", name_));
  if (all.good) return;
  // Of what is made from a wrong header the compiler has too much to say, so it is asked step by
  // step: first of the header and nothing behind it.
  must_be_good({probe("")});
  if (!probe(fmt::format("constexpr const heapwright::recipe& named = ::{};\n", name_)).good)
    throw no_recipe_named(name_, given_, read_header(header_));
  if (!probe(fmt::format("constexpr heapwright::recipe copied = ::{};\n", name_)).good)
    throw not_built(fmt::format("\n  {} is not constexpr: write inline constexpr heapwright::recipe {}{{...}};", name_,
                                last_part(name_)));
  must_be_good({all});
}

void recipe_build::check_place(const std::string& output, const std::string& library) const {
  const files::path place = path_of(library);
  const auto refuse = [](const std::string& why) { throw failure(exit_code::bad_input, why); };
  if (!files::is_directory(place.parent_path())) refuse(fmt::format("{}: its folder does not exist", output));
  if (files::exists(place) && !files::is_regular_file(place))
    refuse(fmt::format("{} is there and is no file that could be replaced", output));
  std::error_code no_library;
  if (files::equivalent(place, path_of(header_), no_library))
    refuse(fmt::format("{} is the recipe itself, which the library would replace; give -o another name", output));
}

void recipe_build::make(const std::string& library, const std::string& header, const std::string& recipe) const {
  std::vector<compiler_run> compilations;
  std::vector<std::string> link = words_in(HEAPWRIGHT_MALLOC_LINK_OPTIONS);
  const auto add = [&](const std::string& source, const char* optimisation) {
    const std::string object = scratch_.file(fmt::format("{}.o", compilations.size()));
    std::vector<std::string> compile = arguments(header, recipe);
    for (const std::string& word : words_in(HEAPWRIGHT_MALLOC_COMPILE_OPTIONS)) compile.push_back(word);
    compile.insert(compile.end(), {optimisation, "-c", source, "-o", object});
    compilations.push_back({compile});
    link.push_back(object);
  };
  for (const std::string& source : words_in(HEAPWRIGHT_MALLOC_FAST_SOURCES)) add(from_.malloc + "/" + source, "-O2");
  // Joined to one source: headers take most of the compiler's time of each.
  std::string joined;
  for (const std::string& source : words_in(HEAPWRIGHT_MALLOC_SMALL_SOURCES))
    joined += fmt::format("#include \"{}/{}\"\n", from_.malloc, source);
  const std::string small = scratch_.file("small.cpp");
  write_source(small, joined);
  add(small, "-Os");
  // Each by itself: some define what others call in libc.
  for (const std::string& source : words_in(HEAPWRIGHT_MALLOC_SHARED_SOURCES)) add(from_.malloc + "/" + source, "-O2");
  const auto count = compilations.size();
  must_be_good(
      with_.run(compilations, [&](std::size_t done) { show_step(fmt::format("compiled {} of {}", done, count)); }));

  show_step("linking");
  link.insert(link.end(), {"-shared", "-o", library});
  for (const std::string& word : words_in(HEAPWRIGHT_MALLOC_LINK_LIBRARIES)) link.push_back(word);
  if (const compiler_result linked = with_.run({{link}}).front(); !linked.good) {
    if (const auto names = defined_twice(linked.complaints); !names.empty())
      throw not_built(fmt::format(
          "\n  the header defines {} without inline, and so once in each file that includes it: make {} inline",
          fmt::join(names, ", "), names.size() == 1 ? "it" : "them"));
    throw failure(exit_code::bad_input,
                  fmt::format("the malloc cannot be linked as {}:\n{}", library, linked.complaints));
  }
  if (!is_malloc(library))
    throw not_built(fmt::format("\n  {} ended well, but has made no malloc: is it a C++ compiler?", with_.name()));
}

}  // namespace heapwright::tool
