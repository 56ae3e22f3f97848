// What a mapped file exports, looked up in its own tables. dlsym would take the loader's lock: a
// thread that holds that may wait for a lock which the caller of malloc has.
//
// Knows the GNU hash table, which every linker writes by default. Allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include <link.h>

#include "../unwind/code_object.hpp"

namespace heapwright::probe {

/// Empty where `begin` is 0.
struct code_range {
  std::uintptr_t begin = 0, end = 0;
};

class exported_symbols {
 public:
  /// The file must stay mapped as long as this is used.
  explicit exported_symbols(const unwind::code_object& of) noexcept;

  /// Where a function or a variable is; null: the file does not export it. O(1).
  [[nodiscard]] const void* find(const char* name) const noexcept;
  /// The code of a function; empty: the file does not export it.
  [[nodiscard]] code_range code_of(const char* name) const noexcept;

 private:
  [[nodiscard]] const ElfW(Sym) * symbol(const char* name) const noexcept;

  std::uintptr_t base_ = 0;
  const std::uint32_t* hash_table_ = nullptr;  ///< null: there is none
  std::uintptr_t symbols_ = 0, names_ = 0;
};

}  // namespace heapwright::probe
