// Pointers that are not ours but libc's own malloc's: from a library that was bound to it past us,
// or from before we were loaded. They are passed on, so that they are freed where they belong. For
// a pointer that is not libc's either, libc prints an error and ends the process. Where libc does
// not export __libc_free (musl, static programs), there are no blocks of its own: it is a mistake.
#pragma once

#include <cstddef>

#include <heapwright/heap/misuse.hpp>

extern "C" {
[[gnu::weak]] void __libc_free(void* p);
[[gnu::weak]] void* __libc_realloc(void* p, std::size_t size);
}

namespace heapwright::process {

inline void libc_free(void* p) noexcept {
  if (__libc_free != nullptr) return __libc_free(p);
  report_foreign(p, free_names);
}

/// Null: no memory, or a mistake after which the process goes on.
inline void* libc_realloc(void* p, std::size_t size) noexcept {
  if (__libc_realloc != nullptr) return __libc_realloc(p, size);
  report_foreign(p, realloc_names);
  return nullptr;
}

}  // namespace heapwright::process
