// A program may replace operator new(size_t) and operator delete(void*) alone: the standard's
// default of each other form calls these ([new.delete.single], [new.delete.array]). Ours do not,
// for speed. So where a program replaces one of the forms that defaults call, ours hand over to the
// defaults of the C++ runtime.
#pragma once

#include <cstddef>
#include <new>

namespace heapwright::process {

/// The runtime's default forms.
struct default_operators {
  bool are_used;  ///< false: the program replaces none of the forms that defaults call, or has no runtime; all are null
  void* (*new_array)(std::size_t);
  void* (*new_nothrow)(std::size_t, const std::nothrow_t&) noexcept;
  void* (*new_array_nothrow)(std::size_t, const std::nothrow_t&) noexcept;
  void* (*new_array_aligned)(std::size_t, std::align_val_t);
  void* (*new_aligned_nothrow)(std::size_t, std::align_val_t, const std::nothrow_t&) noexcept;
  void* (*new_array_aligned_nothrow)(std::size_t, std::align_val_t, const std::nothrow_t&) noexcept;
  void (*delete_array)(void*) noexcept;
  void (*delete_sized)(void*, std::size_t) noexcept;
  void (*delete_array_sized)(void*, std::size_t) noexcept;
  void (*delete_nothrow)(void*, const std::nothrow_t&) noexcept;
  void (*delete_array_nothrow)(void*, const std::nothrow_t&) noexcept;
  void (*delete_array_aligned)(void*, std::align_val_t) noexcept;
  void (*delete_aligned_sized)(void*, std::size_t, std::align_val_t) noexcept;
  void (*delete_array_aligned_sized)(void*, std::size_t, std::align_val_t) noexcept;
  void (*delete_aligned_nothrow)(void*, std::align_val_t, const std::nothrow_t&) noexcept;
  void (*delete_array_aligned_nothrow)(void*, std::align_val_t, const std::nothrow_t&) noexcept;
};

/// Written once, when the shared library is loaded. A program that is linked statically replaces
/// all forms or none.
[[gnu::visibility("hidden")]] extern constinit default_operators defaults;

}  // namespace heapwright::process
