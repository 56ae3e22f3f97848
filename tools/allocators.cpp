// Candidates become allocators only by proof: the loader is asked what the target would be bound
// to.
#include "allocators.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "failure.hpp"
#include "loader.hpp"

namespace heapwright::tool {
namespace {

struct known_allocator {
  const char* name;
  const char* file;
};

/// As Debian's packages name them; the loader finds them, wherever it looks for libraries.
constexpr known_allocator known[] = {
    {"jemalloc", "libjemalloc.so.2"},
    {"mimalloc", "libmimalloc.so.2"},
    {"tcmalloc", "libtcmalloc_minimal.so.4"},
    {"tbb", "libtbbmalloc_proxy.so.2"},
};

constexpr const char* known_names = "glibc, heapwright, hardened, jemalloc, mimalloc, tcmalloc, tbb";

/// The file the loader chose for a preload, after proof that the target's code would be bound to
/// it.
std::string proven(const program& target, const allocator& candidate) {
  const listing objects = ask_loader(target, candidate.library);
  if (!objects.complaint.empty())
    throw failure(exit_code::bad_input,
                  fmt::format("{}: {} does not load: {}", candidate.name, candidate.library, objects.complaint));
  const std::string wanted = std::filesystem::path(candidate.library).filename();
  std::string found = objects.malloc();
  if (std::filesystem::path(found).filename() != wanted)
    throw failure(exit_code::bad_input, fmt::format("{}: preloaded, {} would not be the malloc of {}; {} would",
                                                    candidate.name, candidate.library, target.path, found));
  return found;
}

}  // namespace

given_path given_path::parse(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == 0) throw failure(exit_code::bad_input, fmt::format("--with {}: there is no name before the =", text));
  if (equals + 1 == text.size())
    throw failure(exit_code::bad_input, fmt::format("--with {}: there is no path behind the =", text));
  if (equals != std::string::npos && text.substr(0, equals).find('/') == std::string::npos)
    return {text.substr(0, equals), text.substr(equals + 1)};
  return {"", text};
}

std::string preload_of(const std::string& word) {
  if (word == "glibc") return "";
  if (word == "heapwright") return own_preload();
  if (word == "hardened") return own_preload("libheapwright-hardened.so");
  for (const auto& [name, file] : known)
    if (word == name) return file;
  if (word.find_first_of("/.") == std::string::npos && !std::filesystem::exists(word))
    throw failure(exit_code::bad_input,
                  fmt::format("no malloc named '{}'; there are {}, and any library by its path", word, known_names));
  return library_path(word);
}

allocator allocator_at(const given_path& given) {
  std::string name = given.name.empty() ? std::filesystem::path(given.path).filename().string() : given.name;
  if (!given.name.empty()) return {name, preload_of(given.path)};
  if (name.starts_with("lib")) name.erase(0, 3);
  return {name.substr(0, name.find(".so")), preload_of(given.path)};
}

std::string own_library(const char* file) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const char* const folder : {"../lib", "../" HEAPWRIGHT_LIBDIR}) {
    const auto path = (here / folder / file).lexically_normal();
    if (std::filesystem::exists(path)) return path;
  }
  throw failure(exit_code::bad_input, fmt::format("{} is not in {}; build or install it with this tool", file,
                                                  (here / "../lib").lexically_normal().string()));
}

std::string own_helper(const std::string& name) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& path : {here / "../" HEAPWRIGHT_LIBEXECDIR "/heapwright" / name, here / name}) {
    if (std::filesystem::exists(path)) return std::filesystem::weakly_canonical(path);
  }
  return {};
}

std::string own_preload(const char* file) {
  std::string path = own_library(file);
  // A link does not help: the path of this executable is known with all links followed.
  if (!can_be_preloaded(path))
    throw failure(exit_code::bad_input,
                  fmt::format("heapwright lies in a folder whose path has a space or a colon, which LD_PRELOAD cannot "
                              "express: {}; install it in another folder",
                              path));
  return path;
}

std::vector<allocator> choose_allocators(const program& target, const std::vector<allocator>& given,
                                         const std::vector<std::string>& only) {
  const auto wanted = [&](const std::string& name) {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  };
  std::vector<allocator> chosen;
  const auto choose = [&](allocator candidate) {
    candidate.library = proven(target, candidate);
    chosen.push_back(std::move(candidate));
  };
  if (wanted("heapwright")) choose({"heapwright", own_preload()});
  for (const auto& [name, file] : known) {
    if (!wanted(name)) continue;
    // One that is not installed is left out in silence, unless it was asked for by name.
    if (only.empty() && !ask_loader(target, file).complaint.empty()) continue;
    choose({name, file});
  }
  const allocator as_it_is{"glibc", ""};
  for (allocator candidate : given) {
    const std::string asked_for = candidate.recipe.empty() ? candidate.library : "RECIPE";
    if (!candidate.library.empty()) candidate.library = proven(target, candidate);
    const auto same_name = std::ranges::find(chosen, candidate.name, &allocator::name);
    const allocator* const other = candidate.name == as_it_is.name ? &as_it_is
                                   : same_name != chosen.end()     ? &*same_name
                                                                   : nullptr;
    if (other == nullptr) {
      chosen.push_back(std::move(candidate));
    } else if (other->library != candidate.library) {
      throw failure(exit_code::bad_input, fmt::format("two allocators named {}; give one another name: --with NAME={}",
                                                      candidate.name, asked_for));
    }
  }
  for (const std::string& name : only) {
    const auto matches = [&](const allocator& a) { return a.name == name; };
    if (name != "glibc" && std::none_of(chosen.begin(), chosen.end(), matches))
      throw failure(
          exit_code::bad_input,
          fmt::format("no allocator named '{}'; there are glibc, heapwright, jemalloc, mimalloc, tcmalloc, tbb, and "
                      "those given by --with",
                      name));
  }
  return chosen;
}

std::string malloc_name(const std::string& path) {
  if (is_libc(path)) return "glibc";
  std::string file = std::filesystem::path(path).filename();
  if (file.starts_with("libheapwright")) return "heapwright";
  for (const auto& [name, library] : known)
    if (file == library) return name;
  return file;
}

}  // namespace heapwright::tool
