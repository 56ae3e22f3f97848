// The C libraries of a process, and what stands in for their functions.
//
// A process on Windows may have several C libraries (ucrtbase.dll, msvcrt.dll, msvcr120.dll), each
// with a heap and an errno of its own. Which one a module calls is known only from what it imports.
// So there is a set of entries for each library: an entry knows whose function it stands in for. It
// passes pointers that are not ours to that library, where they come from: from before we were
// loaded, or from within the library.
#pragma once

#include <array>
#include <cstddef>

#include "windows_headers.hpp"

namespace heapwright::process {

/// The functions that entries stand in for, as the library has them; null where it has none.
struct c_library {
  static constexpr unsigned most = 8;  ///< in one process; a further one is left alone

  HMODULE module;
  void (*free)(void*);
  void* (*realloc)(void*, std::size_t);
  std::size_t (*msize)(void*);
  void* (*expand)(void*, std::size_t);
  void* (*recalloc)(void*, std::size_t, std::size_t);
  void (*aligned_free)(void*);
  void* (*aligned_realloc)(void*, std::size_t, std::size_t);
  void* (*aligned_recalloc)(void*, std::size_t, std::size_t, std::size_t);
  std::size_t (*aligned_msize)(void*, std::size_t, std::size_t);
  void* (*aligned_offset_malloc)(std::size_t, std::size_t, std::size_t);
  void* (*aligned_offset_realloc)(void*, std::size_t, std::size_t, std::size_t);
  void* (*aligned_offset_recalloc)(void*, std::size_t, std::size_t, std::size_t, std::size_t);
  void* (*new_object)(std::size_t);
  int* (*error_number)();
};

extern constinit std::array<c_library, c_library::most> c_libraries;

/// A function of a C library.
struct redirected_function {
  static constexpr std::size_t no_original = ~std::size_t{0};

  const char* name;                          ///< as the library exports it
  std::array<void*, c_library::most> entry;  ///< ours, for each library; null: it stays as it is
  std::size_t original;                      ///< offset in c_library; no_original: it is not called
};

inline constexpr std::size_t redirected_count = 43;
using redirected_functions = std::array<redirected_function, redirected_count>;

/// All of them.
[[nodiscard]] const redirected_functions& functions_to_redirect() noexcept;

}  // namespace heapwright::process
