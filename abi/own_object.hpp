// Which addresses lie in the library that this is linked into. The linker says it: no question to
// the loader, and no lock of it.
#pragma once

#include <cstdint>

#include <heapwright/core/linux/linker_symbols.hpp>

namespace heapwright::process {

[[nodiscard]] inline bool is_in_own_object(std::uintptr_t address) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(__ehdr_start);
  return address - begin < reinterpret_cast<std::uintptr_t>(_end) - begin;
}

}  // namespace heapwright::process
