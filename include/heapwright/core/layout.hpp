// What is asked of an allocator: a size and an alignment, carried as one value so that they cannot
// be swapped or lost. Invariant: alignment is a power of two. Size may be zero and need not be a
// multiple of the alignment.
#pragma once

#include <cstddef>
#include <optional>

#include <heapwright/core/bits.hpp>

namespace heapwright {

/// The alignment malloc promises: enough for every scalar type (16 bytes on the 64-bit ABIs).
inline constexpr std::size_t default_alignment = alignof(std::max_align_t);

/// Bytes that the processor's caches move as one.
inline constexpr std::size_t cache_line = 64;

/// What is asked of an allocator.
struct layout {
  std::size_t size = 0;                       ///< bytes; need not be a multiple of the alignment
  std::size_t alignment = default_alignment;  ///< bytes; a power of two

  /// No bytes, aligned as malloc does.
  constexpr layout() noexcept = default;

  /// Not explicit: every allocator takes a size alone, as in `allocate(100)`, and aligns as malloc
  /// does.
  constexpr layout(std::size_t bytes, std::size_t aligned_to = default_alignment) noexcept
      : size(bytes), alignment(aligned_to) {}

  /// Layout of one T.
  template <class T>
  [[nodiscard]] static constexpr layout of() noexcept {
    return {sizeof(T), alignof(T)};
  }

  /// Layout of T[n]; empty when n * sizeof(T) overflows std::size_t.
  template <class T>
  [[nodiscard]] static constexpr std::optional<layout> array(std::size_t n) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(n, sizeof(T), &bytes)) return std::nullopt;
    return layout{bytes, alignof(T)};
  }

  friend constexpr bool operator==(layout, layout) noexcept = default;
};

}  // namespace heapwright
