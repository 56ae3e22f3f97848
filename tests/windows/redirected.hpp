// What the programs here ask of heapwright.dll, and how they say what is wrong.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <windows.h>

inline int failures = 0;

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                         \
    }                                                                                     \
  } while (false)

/// Where the malloc is that a program here is tested with; null: in the program itself.
#ifdef MALLOC_WITHIN
constexpr const char* malloc_module = nullptr;
#else
constexpr const char* malloc_module = "heapwright.dll";
#endif

/// A function of a library of the process.
template <class Function>
Function* function_of(const char* library, const char* name) {
  auto* const found = ::GetProcAddress(::GetModuleHandleA(library), name);
  if (found == nullptr) {
    std::fprintf(stderr, "%s has no %s\n", library == nullptr ? "the program" : library, name);
    std::exit(2);
  }
  return reinterpret_cast<Function*>(reinterpret_cast<void*>(found));
}

/// Bytes in blocks of ours.
inline unsigned long long in_use() {
  static auto* const ask =
      function_of<void(unsigned long long*, unsigned long long*)>(malloc_module, "heapwright_in_use");
  unsigned long long used = 0, mapped = 0;
  ask(&used, &mapped);
  return used;
}

/// Whether `allocate()` takes `bytes` at least from our heap. The block stays.
template <class F>
bool takes(unsigned long long bytes, F allocate) {
  const unsigned long long before = in_use();
  return allocate() != nullptr && in_use() >= before + bytes;
}
