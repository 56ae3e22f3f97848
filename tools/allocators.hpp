// The allocators a comparison can choose from, and where ours lies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program.hpp"

namespace heapwright::tool {

struct allocator {
  std::string name;
  std::string library;  ///< the file to preload; empty to leave the program as it is
};

/// The malloc, or another library, of the same build or installation as this executable. Throws `failure` if it is not there.
std::string own_library(const char* file = "libheapwright.so");

/// What can be preloaded into the target: ours, each known one that is installed, each given by the user as `path` or
/// `name=path`. With `only`, no others than those named there. Throws `failure` for an asked-for one that does not
/// load.
std::vector<allocator> choose_allocators(const program& target, const std::vector<std::string>& given,
                                         const std::vector<std::string>& only);

/// What a person calls the malloc in this file: "glibc", "jemalloc", or the file's name.
std::string malloc_name(const std::string& path);

}  // namespace heapwright::tool
