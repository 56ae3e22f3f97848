// Blocks of the process's malloc that are aligned to more than malloc aligns every block. Windows
// has a function of its own to free those.
#pragma once

#include <cstddef>
#include <cstdlib>

#ifdef _WIN32
#include <malloc.h>
#endif

#include <heapwright/core/language.hpp>

namespace heapwright::detail {

/// `alignment` is a power of two, at least that of a pointer. Null when malloc has no memory.
[[nodiscard]] inline void* malloc_aligned(std::size_t alignment, std::size_t size) noexcept {
#ifdef _WIN32
  return ::_aligned_malloc(size, alignment);
#else
  void* p = nullptr;
  return ::posix_memalign(&p, alignment, size) == 0 ? p : nullptr;
#endif
}

/// What malloc_aligned returned, or null.
inline void free_aligned(void* p) noexcept {
#ifdef _WIN32
  ::_aligned_free(p);
#else
  std::free(p);
#endif
}

}  // namespace heapwright::detail
