// What builds that look for mistakes keep at the end of each live block: how many bytes were asked
// for, and a pattern that an overrun destroys.
//
//   [ payload asked for | pattern ... | guard word ]
//
// The guard word is the size asked for, scrambled with the address. In release builds there is
// neither, and no space for it. Invariant: a block holds the bytes asked for and `bytes` more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/core/poison.hpp>

namespace heapwright {

struct block_guard {
  /// Where memory is poisoned the size is known too: what lies behind it is not the program's to
  /// use.
  static constexpr bool active = checks_callers || poisons;
  static constexpr std::size_t bytes = active ? 8 : 0;

  static void set([[maybe_unused]] void* payload, [[maybe_unused]] std::size_t capacity,
                  [[maybe_unused]] std::size_t asked) noexcept {
    if constexpr (active) {
      std::byte* const rest = static_cast<std::byte*>(payload) + asked;
      const std::size_t rest_bytes = capacity - asked;
      const std::uint64_t word = asked ^ scramble(payload);
      unpoison(rest, rest_bytes);
      std::memset(rest, pattern, rest_bytes - bytes);
      std::memcpy(rest + rest_bytes - bytes, &word, bytes);
      poison(rest, rest_bytes);
    }
  }

  /// Bytes asked for; in release builds all of `capacity`.
  [[nodiscard]] static std::size_t asked(const void* payload, std::size_t capacity) noexcept {
    if constexpr (!active) return capacity;
    std::byte* const word_at = static_cast<std::byte*>(const_cast<void*>(payload)) + capacity - bytes;
    std::uint64_t word;
    reveal(word_at, bytes);
    std::memcpy(&word, word_at, bytes);
    poison(word_at, bytes);
    return word ^ scramble(payload);
  }

  /// Whether nothing was written behind the bytes asked for.
  [[nodiscard]] static bool intact(const void* payload, std::size_t capacity) noexcept {
    const std::size_t size = asked(payload, capacity);
    if (size > capacity - bytes) return false;
    std::byte* const rest = static_cast<std::byte*>(const_cast<void*>(payload)) + size;
    const std::size_t pattern_bytes = capacity - bytes - size;
    bool same = true;
    reveal(rest, pattern_bytes);
    for (std::size_t i = 0; i < pattern_bytes; ++i) same = same && rest[i] == std::byte{pattern};
    poison(rest, pattern_bytes);
    return same;
  }

 private:
  static constexpr unsigned char pattern = 0xFD;

  [[nodiscard]] static std::uint64_t scramble(const void* payload) noexcept {
    return fibonacci_hash(address_of(payload)) ^ 0x600D'B10C'600D'B10CU;
  }
};

}  // namespace heapwright
