// From a command line to the ELF program that will run: through PATH, `#!` lines and /usr/bin/env.
// And from there to the question that decides everything else: does preloading have any effect on
// it?
#pragma once

#include <string>
#include <vector>

namespace heapwright::tool {

struct program {
  std::string path;    ///< the ELF file that is loaded: the interpreter, for a script
  std::string loader;  ///< the dynamic loader it asks for
  bool is_go = false;

  /// Throws `failure` (127, 126 or 125) with a message that says what to do when the command cannot
  /// run on a preloaded malloc: missing, not executable, static, gains privileges, foreign, or
  /// defining malloc itself. Tells on stderr if malloc is only a part of what the program allocates
  /// with: Go's programs that have C code.
  static program resolve(const std::vector<std::string>& command);
};

class elf_file;

/// Why a library that is preloaded has no effect on an ELF program, as what follows its name in a
/// sentence: "is statically linked: ...". Empty: it has.
[[nodiscard]] std::string why_not_preloadable(const elf_file& elf, const std::string& path);

}  // namespace heapwright::tool
