// From a command line to the ELF program that will run: through PATH, `#!` lines and /usr/bin/env. And from there to
// the question that decides everything else: does preloading have any effect on it?
#pragma once

#include <string>
#include <vector>

namespace heapwright::tool {

struct program {
  std::string path;    ///< the ELF file that is loaded: the interpreter, for a script
  std::string loader;  ///< the dynamic loader it asks for

  /// Throws `failure` (127, 126 or 125) with a message that says what to do when the command cannot run on a preloaded
  /// malloc: missing, not executable, static, gains privileges, foreign, or defining malloc itself.
  static program resolve(const std::vector<std::string>& command);
};

}  // namespace heapwright::tool
