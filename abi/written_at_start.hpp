// What a library writes while the process starts and never after, above all what points to code:
// what a mistake leads to, the program's own handlers of faults, the C++ runtime's operators.
//
// It lies in the part of the library that the loader makes unwritable after relocation (RELRO), and
// is opened for the moment in which it is written. So an overflow, or a write through a stale
// pointer, cannot change it.
//
// States: closed, and opened while an `opened` lives. The last page of the part stays writable if
// the part does not fill it, and all of it where the linker makes none (-z norelro): the loader
// does so too.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/linux/linker_symbols.hpp>

/// Of a variable. Compilers know the name of the section as that of a writable one.
#define HEAPWRIGHT_WRITTEN_AT_START gnu::section(".data.rel.ro.heapwright")

namespace heapwright::process {

/// A variable that is written at start can be written while this lives. By one thread at a time;
/// others may read. No lock of the loader is taken.
class opened {
 public:
  template <class T>
  explicit opened(T& variable) noexcept : opened(address_of(&variable), sizeof(T)) {}
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;
  [[gnu::noinline, gnu::cold]] ~opened() {
    if (is_opened_ && begin_ < end_) (void)set_access(PROT_READ);
  }

  /// False: the system refuses it, and the variable is as unwritable as before.
  explicit operator bool() const noexcept { return is_opened_; }

 private:
  [[gnu::noinline, gnu::cold]] opened(std::uintptr_t address, std::size_t bytes) noexcept {
    const unwritable_part part;
    begin_ = std::max(align_down(address, part.page), part.begin);
    end_ = std::min(align_up(address + bytes, part.page), part.end);
    is_opened_ = begin_ >= end_ || set_access(PROT_READ | PROT_WRITE);
  }

  /// Of what this is linked into, in whole pages as the loader rounds them.
  struct unwritable_part {
    std::uintptr_t begin = 0, end = 0;
    std::size_t page = ::getauxval(AT_PAGESZ);

    unwritable_part() noexcept {
      const std::uintptr_t file = address_of(__ehdr_start);
      const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(__ehdr_start);
      const auto* const parts = reinterpret_cast<const ElfW(Phdr)*>(file + header->e_phoff);
      std::uintptr_t base = file;
      for (unsigned i = 0; i < header->e_phnum; ++i) {
        const ElfW(Phdr)& part = parts[i];
        if (part.p_type == PT_LOAD && part.p_offset == 0) {
          base = file - part.p_vaddr;
          page = std::min<std::size_t>(page, part.p_align);  // no file is loaded where pages are larger
        }
        if (part.p_type == PT_GNU_RELRO) begin = part.p_vaddr, end = part.p_vaddr + part.p_memsz;
      }
      begin = align_down(base + begin, page);
      end = align_down(base + end, page);
    }
  };

  [[nodiscard]] bool set_access(int access) const noexcept {
    const int kept = errno;
    const bool is_set = ::mprotect(reinterpret_cast<void*>(begin_), end_ - begin_, access) == 0;
    errno = kept;
    return is_set;
  }

  std::uintptr_t begin_ = 0, end_ = 0;  ///< of the pages that the loader has made unwritable
  bool is_opened_ = false;
};

}  // namespace heapwright::process
