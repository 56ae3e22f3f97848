// Tells AddressSanitizer and Valgrind which memory a program must not touch though it may: free
// blocks, headers, the rest of a chunk. Without AddressSanitizer, and without HEAPWRIGHT_VALGRIND,
// every function here is empty.
//
// A range is either usable or poisoned. Its allocator poisons what it takes from a source,
// unpoisons each block as it hands it out, poisons it when it comes back, and unpoisons the whole
// before it gives it back to the source, which knows nothing of this.
#pragma once

#include <cstddef>

#include <heapwright/core/language.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define HEAPWRIGHT_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEAPWRIGHT_HAS_ASAN 1
#endif
#endif

#ifdef HEAPWRIGHT_HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif
#ifdef HEAPWRIGHT_VALGRIND
#include <valgrind/memcheck.h>
#endif

namespace heapwright {

#if defined(HEAPWRIGHT_HAS_ASAN) || defined(HEAPWRIGHT_VALGRIND)

/// Whether AddressSanitizer or Valgrind is told of anything in this build.
inline constexpr bool poisons = true;
#else

/// Whether AddressSanitizer or Valgrind is told of anything in this build.
inline constexpr bool poisons = false;
#endif

/// Touching these bytes is a mistake from now on. AddressSanitizer sees units of 8 bytes: what
/// begins or ends within one is rounded so that no usable byte is poisoned.
inline void poison([[maybe_unused]] void* p, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef HEAPWRIGHT_HAS_ASAN
  __asm__("" : "+r"(p));  // GCC takes the call for a read of memory that nobody has written yet
  __asan_poison_memory_region(p, bytes);
#endif
#ifdef HEAPWRIGHT_VALGRIND
  VALGRIND_MAKE_MEM_NOACCESS(p, bytes);
#endif
}

/// These bytes may be written from now on, and read once they have been written.
inline void unpoison([[maybe_unused]] void* p, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef HEAPWRIGHT_HAS_ASAN
  __asan_unpoison_memory_region(p, bytes);
#endif
#ifdef HEAPWRIGHT_VALGRIND
  VALGRIND_MAKE_MEM_UNDEFINED(p, bytes);
#endif
}

/// These bytes, poisoned, hold something that their allocator wrote and is about to read: a link of
/// a list.
inline void reveal([[maybe_unused]] void* p, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef HEAPWRIGHT_HAS_ASAN
  __asan_unpoison_memory_region(p, bytes);
#endif
#ifdef HEAPWRIGHT_VALGRIND
  VALGRIND_MAKE_MEM_DEFINED(p, bytes);
#endif
}

/// A word that an allocator keeps in poisoned memory. Only its own reads and writes reach it.
template <class T>
class hidden {
  static_assert(sizeof(T) == 8, "poison comes in units of 8 bytes");

 public:
  operator T() const noexcept {
    reveal(const_cast<T*>(&value_), sizeof(T));
    const T value = value_;
    poison(const_cast<T*>(&value_), sizeof(T));
    return value;
  }

  hidden& operator=(T value) noexcept {
    unpoison(&value_, sizeof(T));
    value_ = value;
    poison(&value_, sizeof(T));
    return *this;
  }

  hidden& operator=(const hidden& other) noexcept { return *this = T{other}; }

  T operator->() const noexcept { return *this; }

 private:
  T value_;
};

}  // namespace heapwright
