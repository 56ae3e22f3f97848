// Whether memory reads as zero, and how it is made so: for blocks of a class, which are a multiple
// of 8 bytes long and short as a rule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/language.hpp>

namespace heapwright {

class zero_memory {
  using quad [[gnu::vector_size(16)]] = std::uint64_t;

 public:
  /// `bytes` is a multiple of 8, and p is aligned to it.
  [[nodiscard, gnu::always_inline]] static bool is_zero(const std::byte* p, std::size_t bytes) noexcept {
    if (bytes < sizeof(quad)) {
      std::uint64_t word = 0;
      if (bytes != 0) std::memcpy(&word, p, sizeof word);
      return word == 0;
    }
    quad any{};
    for_each_quad(p, bytes, [&](const std::byte* at) {
      quad q;
      std::memcpy(&q, at, sizeof q);
      any |= q;
    });
    return (any[0] | any[1]) == 0;
  }

  /// Of any address and length.
  [[nodiscard]] static bool is_zero_anywhere(const std::byte* p, std::size_t bytes) noexcept {
    for (; bytes % 8 != 0; --bytes) {
      if (p[bytes - 1] != std::byte{0}) return false;
    }
    return is_zero(p, bytes);
  }

  /// `bytes` is a multiple of 8, and at least 16; p is aligned to 8.
  [[gnu::always_inline]] static void clear(std::byte* p, std::size_t bytes) noexcept {
    for_each_quad(p, bytes, [](std::byte* at) {
      const quad zero{};
      std::memcpy(at, &zero, sizeof zero);
    });
  }

 private:
  /// Calls f(address of a quad) for the memory from p on, all of it, some of it twice: so that
  /// all sizes up to 64 take four steps, and the processor need not guess how many. `n` is at least
  /// that of a quad.
  template <class Byte, class F>
  [[gnu::always_inline]] static void for_each_quad(Byte* p, std::size_t n, F f) noexcept {
    // In a large unit the compiler would make these calls, and what they write would go by memory.
    const auto at = [&](std::size_t offset) __attribute__((always_inline)) { f(p + offset); };
    const auto four = [&](std::size_t from) __attribute__((always_inline)) {
      at(from), at(from + 16), at(from + 32), at(from + 48);
    };
    if (n <= 64) {
      const std::size_t last = n - sizeof(quad);
      at(0), at(std::min<std::size_t>(16, last)), at(std::min<std::size_t>(32, last)), at(last);
    } else {
      for (std::size_t from = 0; from < n - 64; from += 64) {
        four(from);
        asm volatile("");  // or the compiler makes the loop a call of memset
      }
      four(n - 64);
    }
  }
};

}  // namespace heapwright
