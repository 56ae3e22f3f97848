// The allocators a comparison can choose from, and where ours lies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program.hpp"

namespace heapwright::tool {

struct allocator {
  std::string name;
  std::string library;   ///< the file to preload; empty to leave the program as it is
  std::string recipe{};  ///< what the library was made from, if it is made for one comparison alone
};

/// The malloc, or another library, of the same build or installation as this executable. Throws
/// `failure` if it is not there.
std::string own_library(const char* file = "libheapwright.so");

/// The same, to be preloaded. Throws `failure` if LD_PRELOAD cannot express its path, too.
std::string own_preload(const char* file = "libheapwright.so");

/// A program that comes with this one, of the same build or installation. Empty: it is not there.
std::string own_helper(const std::string& name);

/// A word after --with: `path` or `name=path`. The name is empty where there is none. Throws
/// `failure` for `=path`.
struct given_path {
  std::string name;
  std::string path;

  static given_path parse(const std::string& text);
};

/// What can be preloaded into the target: ours, each known one that is installed, each given by the
/// user; one that is given twice, or is there already, once. With `only`, of ours and the known
/// ones no others than those named there. Throws `failure` for an asked-for one that does not load,
/// and for two libraries of one name.
std::vector<allocator> choose_allocators(const program& target, const std::vector<allocator>& given,
                                         const std::vector<std::string>& only);

/// What to preload for a word after --with: a malloc by the name that its row has (glibc, which
/// needs nothing, heapwright, hardened, jemalloc ...), or a library.
std::string preload_of(const std::string& word);

/// The allocator that a word after --with names.
allocator allocator_at(const given_path& given);

/// What a person calls the malloc in this file: "glibc", "jemalloc", or the file's name.
std::string malloc_name(const std::string& path);

}  // namespace heapwright::tool
