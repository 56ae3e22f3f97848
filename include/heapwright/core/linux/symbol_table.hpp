// Whether a file names all its functions, or only those that it exports.
//
// Of a file without a symbol table of its own, addr2line gives an address the name of the nearest
// exported function before it, in which it need not lie.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <heapwright/core/language.hpp>

namespace heapwright::detail {

/// True as well where the file cannot be read. Allocates nothing.
[[nodiscard]] inline bool has_symbol_table(const char* path) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  Elf64_Ehdr file{};
  bool has_one = ::pread(fd, &file, sizeof file, 0) != sizeof file;
  for (unsigned i = 0; i < file.e_shnum && !has_one; ++i) {
    Elf64_Shdr section;
    const auto at = static_cast<off_t>(file.e_shoff + i * sizeof section);
    has_one = ::pread(fd, &section, sizeof section, at) != sizeof section || section.sh_type == SHT_SYMTAB;
  }
  ::close(fd);
  return has_one;
}

}  // namespace heapwright::detail
