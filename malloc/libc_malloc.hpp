// Pointers that are not ours but libc's own malloc's: from a library that was bound to it past us,
// or from before we were loaded. They are passed on, so that they are freed where they belong. For
// a pointer that is not libc's either, libc prints an error and ends the process. Where libc does
// not export __libc_free (musl, static programs), such a free does nothing.
#pragma once

#include <cerrno>
#include <cstddef>

extern "C" {
[[gnu::weak]] void __libc_free(void* p);
[[gnu::weak]] void* __libc_realloc(void* p, std::size_t size);
}

namespace heapwright::process {

inline void libc_free(void* p) noexcept {
  if (__libc_free != nullptr) __libc_free(p);
}

inline void* libc_realloc(void* p, std::size_t size) noexcept {
  return __libc_realloc != nullptr ? __libc_realloc(p, size) : nullptr;
}

}  // namespace heapwright::process
