// The seal of a block: its last eight bytes, where recipe.hardening.sealed says so. It tells a
// write beyond the block, and what free may be told wrongly: that the block is live, how long it
// is, how it is aligned, and which entries gave it out.
//
//   bits  0..35   canary: of the address, of a key that only this process has, and of the rest
//   bits 36..62   what is known of the block, hidden by a hash of address and key: slack (18 bits),
//                 alignment (6), origin (2), whether it is live
//   bit  63       1
//
// States of a block:  fresh   the word is 0: it was never given out, or its span was cleared since
//                     live    from allocate to deallocate
//                     free    in a quarantine, a free list or a span
// Between the bytes that were asked for and the seal lies the slack; its first bytes have a value
// that the address and the key give too. So a write of one byte beyond what was asked for is seen,
// but for the one value that is there already.
//
// Invariant: that value, and the first and the last byte of a seal, are 0x81 or more: no end of a
// text, no letter and no small number.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/hash.hpp>

namespace heapwright {

/// Which entries give a block out and take it back: malloc and its kin, new, new[].
enum class block_origin : std::uint8_t { malloc, new_object, new_array };

/// What the caller of a free says of the block.
struct block_claim {
  static constexpr std::size_t not_said = SIZE_MAX;

  block_origin origin = block_origin::malloc;
  std::size_t size = not_said;
  std::size_t alignment = not_said;  ///< 0: none was asked for
};

enum class seal_state : std::uint8_t { broken, fresh, live, free };

struct seal_reading {
  seal_state state = seal_state::broken;
  block_origin origin = block_origin::malloc;
  std::uint8_t alignment_log2_plus_one = 0;  ///< 0: no alignment was asked for
  std::uint32_t slack = 0;

  [[nodiscard]] constexpr std::size_t alignment() const noexcept {
    return alignment_log2_plus_one == 0 ? 0 : std::size_t{1} << (alignment_log2_plus_one - 1);
  }
};

/// Reads and writes seals of blocks of one heap. `room`: the bytes before the seal.
class block_seal {
 public:
  static constexpr std::size_t bytes = sizeof(std::uint64_t);

  /// A block may have so many bytes that nobody asked for.
  static constexpr std::size_t most_slack = (std::size_t{1} << 18) - 1;

  constexpr explicit block_seal(std::uint64_t key) noexcept : key_(key) {}

  void write_live(std::byte* p, std::size_t room, std::size_t size, block_origin origin,
                  std::size_t alignment) const noexcept {
    const std::uint64_t hash = hash_of(p);
    const std::size_t slack = room - size;
    std::memset(p + size, filler(hash), std::min(slack, most_filled));
    const auto aligned =
        alignment == 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(std::countr_zero(alignment)) + 1;
    store(p, room, hash, slack | aligned << 18 | static_cast<std::uint64_t>(origin) << 24 | live);
  }

  void write_free(std::byte* p, std::size_t room) const noexcept { store(p, room, hash_of(p), 0); }

  /// The word before a block, where that is the block's own: not of blocks side by side.
  void write_head(std::byte* p) const noexcept {
    const std::uint64_t word = head_of(p);
    std::memcpy(p - bytes, &word, bytes);
  }

  [[nodiscard]] bool has_head(const std::byte* p) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, p - bytes, bytes);
    return word == head_of(p);
  }

  [[nodiscard]] seal_reading read(const std::byte* p, std::size_t room) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, p + room, bytes);
    if (word == 0) return {.state = seal_state::fresh};
    const std::uint64_t hash = hash_of(p), info = (word ^ hash) >> info_shift & info_mask;
    if (word != word_of(hash, info)) return {};
    seal_reading r{.origin = static_cast<block_origin>(info >> 24 & 3),
                   .alignment_log2_plus_one = static_cast<std::uint8_t>(info >> 18 & 63),
                   .slack = static_cast<std::uint32_t>(info & most_slack)};
    if (r.slack > room) return {};
    if ((info & live) == 0)
      r.state = seal_state::free;
    else if (has_filler(p, room, r.slack, filler(hash)))
      r.state = seal_state::live;
    return r;
  }

 private:
  static constexpr unsigned info_shift = 36;
  static constexpr std::uint64_t canary_mask = (std::uint64_t{1} << info_shift) - 1;
  static constexpr std::uint64_t info_mask = (std::uint64_t{1} << 27) - 1, live = std::uint64_t{1} << 26;
  static constexpr std::uint64_t high_bit = std::uint64_t{1} << 63;
  static constexpr unsigned no_text = 0x81;  ///< in a byte: no end of a text, no letter, no small number
  static constexpr std::size_t most_filled = 32;

  [[nodiscard]] std::uint64_t hash_of(const std::byte* p) const noexcept {
    const std::uint64_t h = fibonacci_hash(address_of(p) ^ key_);
    return h ^ h >> 32;
  }

  [[nodiscard]] static std::uint64_t word_of(std::uint64_t hash, std::uint64_t info) noexcept {
    const std::uint64_t canary = fibonacci_hash(hash + info) >> (64 - info_shift) | no_text;
    return ((hash ^ info << info_shift) & ~canary_mask) | canary | high_bit;
  }

  [[nodiscard]] std::uint64_t head_of(const std::byte* p) const noexcept { return ~hash_of(p) | high_bit | no_text; }

  [[nodiscard]] static int filler(std::uint64_t hash) noexcept { return static_cast<int>((hash >> 8 & 255) | no_text); }

  static bool has_filler(const std::byte* p, std::size_t room, std::size_t slack, int value) noexcept {
    const std::byte* const first = p + room - slack;
    return std::all_of(first, first + std::min(slack, most_filled),
                       [value](std::byte b) { return b == static_cast<std::byte>(value); });
  }

  static void store(std::byte* p, std::size_t room, std::uint64_t hash, std::uint64_t info) noexcept {
    const std::uint64_t word = word_of(hash, info);
    std::memcpy(p + room, &word, bytes);
  }

  std::uint64_t key_;
};

}  // namespace heapwright
