// Which objects a program would be made of, in the order in which the dynamic loader looks symbols
// up.
//
// The rules (RUNPATH, $ORIGIN, the cache, LD_LIBRARY_PATH, preloads first) are the loader's, so the
// loader is asked: `ld.so --list` maps everything and prints it, and runs no code of the program.
#pragma once

#include <string>
#include <vector>

#include "program.hpp"

namespace heapwright::tool {

struct listing {
  std::vector<std::string> objects;  ///< the program first, then paths in lookup order
  std::string complaint;             ///< why `library` was ignored, in the loader's words; empty if it was not

  /// The object whose malloc every part of the program binds to: the first that defines one. Empty
  /// if there is none.
  [[nodiscard]] std::string malloc() const;
};

/// `library` is preloaded too, empty: none. Throws `failure` if the program cannot be loaded at all
/// (a missing library, say).
listing ask_loader(const program& target, const std::string& library);

/// LD_PRELOAD with a library put before what the environment already has there; but behind the
/// probe, which sees only calls that reach it before a malloc.
std::string preload_value(const std::string& library);

/// An absolute path for a library given by the user; a name without a slash that is no file here is
/// left for the loader to find. Throws `failure` for what LD_PRELOAD cannot express and for files
/// that are no libraries.
std::string library_path(const std::string& given);

/// Whether LD_PRELOAD can hold this path: a space or a colon would end it.
bool can_be_preloaded(const std::string& path);

/// By its name: a header, which may define a recipe.
bool is_header(const std::string& path);

/// Is this file the probe, which passes calls on to the malloc below it?
bool is_probe(const std::string& path);

/// Is this file the C library, whose malloc is the default?
bool is_libc(const std::string& path);

}  // namespace heapwright::tool
