// Arithmetic on sizes and addresses that every layer above shares. All alignments are powers of
// two; callers that take one from outside check it with is_power_of_two first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/language.hpp>

namespace heapwright {

/// Bytes.
inline constexpr std::size_t KiB = 1024;
inline constexpr std::size_t MiB = 1024 * KiB;
inline constexpr std::size_t GiB = 1024 * MiB;

/// Not std::has_single_bit, which calls a library function where the processor is not known to
/// count bits.
[[nodiscard]] constexpr bool is_power_of_two(std::size_t n) noexcept { return n != 0 && (n & (n - 1)) == 0; }

/// Smallest multiple of `alignment` that is >= n. Wraps to a value < n on overflow, which callers
/// test for.
[[nodiscard]] constexpr std::size_t align_up(std::size_t n, std::size_t alignment) noexcept {
  return (n + alignment - 1) & ~(alignment - 1);
}

[[nodiscard]] constexpr std::size_t align_down(std::size_t n, std::size_t alignment) noexcept {
  return n & ~(alignment - 1);
}

[[nodiscard]] inline std::uintptr_t address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

[[nodiscard]] inline bool is_aligned(const void* p, std::size_t alignment) noexcept {
  return (address_of(p) & (alignment - 1)) == 0;
}

/// Quotient rounded up. Precondition: d > 0 and n + d - 1 does not overflow.
[[nodiscard]] constexpr std::size_t divide_up(std::size_t n, std::size_t d) noexcept { return (n + d - 1) / d; }

/// Index of the highest set bit. Precondition: n > 0.
[[nodiscard]] constexpr unsigned floor_log2(std::size_t n) noexcept {
  return static_cast<unsigned>(std::bit_width(n)) - 1;
}

}  // namespace heapwright
