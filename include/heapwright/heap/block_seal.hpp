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
//                     free    in a quarantine, a free list or a span: the word is the hash itself
// Between the bytes that were asked for and the seal lies the slack; its first bytes have a value
// that the address and the key give too. So a write of one byte beyond what was asked for is seen,
// but for the one value that is there already.
//
// Invariant: that value, and the first and the last byte of a seal, are 0x81 or more: no end of a
// text, no letter and no small number.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/heap/block_claim.hpp>

namespace heapwright {

enum class seal_state : std::uint8_t { broken, fresh, live, free };

struct seal_reading {
  seal_state state = seal_state::broken;
  block_origin origin = block_origin::malloc;
  std::uint8_t alignment_log2_plus_one = 0;  ///< 0: no alignment was asked for
  std::uint32_t slack = 0;
  bool is_known =
      false;  ///< whether the others say what is so: of a live block, and of one whose slack alone is broken

  [[nodiscard]] constexpr std::size_t alignment() const noexcept {
    return alignment_log2_plus_one == 0 ? 0 : std::size_t{1} << (alignment_log2_plus_one - 1);
  }
};

/// Reads and writes seals of blocks of one heap. `room`: the bytes before the seal, a multiple of
/// 8.
class block_seal {
 public:
  static constexpr std::size_t bytes = sizeof(std::uint64_t);

  /// Bytes of the slack that are filled: its first ones.
  static constexpr std::size_t most_filled = 16;

  /// A block may have so many bytes that nobody asked for.
  static constexpr std::size_t most_slack = (std::size_t{1} << 18) - 1;

  constexpr explicit block_seal(std::uint64_t key) noexcept : key_(key) {}

  [[gnu::always_inline]] void write_live(std::byte* p, std::size_t room, std::size_t size, block_origin origin,
                                         std::size_t alignment) const noexcept {
    const std::uint64_t hash = hash_of(p);
    const std::size_t slack = room - size;
    fill(p, room, slack, hash);
    store(p + room, live_word(hash, slack | alignment_info(alignment) | origin_info(origin) | live));
  }

  void write_free(std::byte* p, std::size_t room) const noexcept { store(p + room, free_word(hash_of(p))); }

  /// The word before a block, where that is the block's own: not of blocks side by side.
  void write_head(std::byte* p) const noexcept { store(p - bytes, head_of(p)); }

  [[nodiscard]] bool has_head(const std::byte* p) const noexcept { return load(p - bytes) == head_of(p); }

  /// What slack_if_live says of a block that is not live, or not what the caller says.
  static constexpr std::size_t no_slack = SIZE_MAX;

  /// Of a block that is live, and what the caller says: as `read` has it.
  [[nodiscard, gnu::always_inline]] std::size_t slack_if_live(const std::byte* p, std::size_t room,
                                                              const block_claim& said) const noexcept {
    const std::uint64_t hash = hash_of(p), word = load(p + room);
    const std::uint64_t info = (word ^ hash) >> info_shift & info_mask;
    const std::size_t slack = info & most_slack;
    const bool is_so =
        word == live_word(hash, info) && (info & (live | origin_mask)) == (live | origin_info(said.origin)) &&
        (said.alignment == block_claim::not_said || (info & alignment_mask) == alignment_info(said.alignment)) &&
        (said.size == block_claim::not_said || said.size == room - slack) && slack <= room &&
        has_filler(p, room, slack, hash);
    return is_so ? slack : no_slack;
  }

  /// Whether the block is free, and not fresh.
  [[nodiscard]] bool is_free(const std::byte* p, std::size_t room) const noexcept {
    return load(p + room) == free_word(hash_of(p));
  }

  [[nodiscard]] seal_reading read(const std::byte* p, std::size_t room) const noexcept {
    const std::uint64_t word = load(p + room);
    if (word == 0) return {.state = seal_state::fresh};
    const std::uint64_t hash = hash_of(p);
    if (word == free_word(hash)) return {.state = seal_state::free};
    const std::uint64_t info = (word ^ hash) >> info_shift & info_mask;
    if (word != live_word(hash, info) || (info & live) == 0) return {};
    seal_reading r{.origin = static_cast<block_origin>(info >> 24 & 3),
                   .alignment_log2_plus_one = static_cast<std::uint8_t>(info >> 18 & 63),
                   .slack = static_cast<std::uint32_t>(info & most_slack),
                   .is_known = (info & most_slack) <= room};
    if (r.slack <= room && has_filler(p, room, r.slack, hash)) r.state = seal_state::live;
    return r;
  }

 private:
  static constexpr unsigned info_shift = 36;
  static constexpr std::uint64_t canary_mask = (std::uint64_t{1} << info_shift) - 1;
  static constexpr std::uint64_t info_mask = (std::uint64_t{1} << 27) - 1, live = std::uint64_t{1} << 26;
  static constexpr std::uint64_t origin_mask = std::uint64_t{3} << 24, alignment_mask = std::uint64_t{63} << 18;
  static constexpr std::uint64_t high_bit = std::uint64_t{1} << 63;
  static constexpr unsigned no_text = 0x81;  ///< in a byte: no end of a text, no letter, no small number

  [[nodiscard]] std::uint64_t hash_of(const std::byte* p) const noexcept {
    const std::uint64_t h = fibonacci_hash(address_of(p) ^ key_);
    return h ^ h >> 32;
  }

  [[nodiscard]] static std::uint64_t free_word(std::uint64_t hash) noexcept { return hash | high_bit | no_text; }

  [[nodiscard]] static std::uint64_t live_word(std::uint64_t hash, std::uint64_t info) noexcept {
    const std::uint64_t canary = fibonacci_hash(hash + info) >> (64 - info_shift) | no_text;
    return ((hash ^ info << info_shift) & ~canary_mask) | canary | high_bit;
  }

  [[nodiscard]] std::uint64_t head_of(const std::byte* p) const noexcept { return ~hash_of(p) | high_bit | no_text; }

  static constexpr std::uint64_t origin_info(block_origin o) noexcept { return static_cast<std::uint64_t>(o) << 24; }

  static constexpr std::uint64_t alignment_info(std::size_t alignment) noexcept {
    return alignment == 0 ? 0 : (static_cast<std::uint64_t>(std::countr_zero(alignment)) + 1) << 18;
  }

  using chunk [[gnu::vector_size(most_filled)]] = std::uint64_t;

  /// A chunk at [n] has n bytes of ones, the last; the rest is zero.
  static constexpr std::array<std::uint8_t, 2 * most_filled + 1> masks = [] {
    std::array<std::uint8_t, 2 * most_filled + 1> all{};
    std::fill(all.begin() + most_filled, all.end(), std::uint8_t{0xFF});
    return all;
  }();

  [[nodiscard]] static std::uint64_t filler(std::uint64_t hash) noexcept {
    return ((hash >> 8 & 0xFF) | no_text) * 0x0101'0101'0101'0101;
  }

  /// The shortest blocks have no room for a chunk.
  [[nodiscard]] static std::uint64_t short_mask(std::size_t slack) noexcept {
    return slack == 0 ? 0 : ~std::uint64_t{0} << (bytes - slack) * 8;
  }

  [[gnu::always_inline]] static void fill(std::byte* p, std::size_t room, std::size_t slack,
                                          std::uint64_t hash) noexcept {
    const std::uint64_t value = filler(hash);
    if (room < most_filled) return store(p, (load(p) & ~short_mask(slack)) | (value & short_mask(slack)));
    std::byte* const at = p + room - std::max(slack, most_filled);
    chunk now, mask;
    std::memcpy(&now, at, sizeof now);
    std::memcpy(&mask, &masks[std::min(slack, most_filled)], sizeof mask);
    now = (now & ~mask) | (chunk{value, value} & mask);
    std::memcpy(at, &now, sizeof now);
  }

  [[nodiscard, gnu::always_inline]] static bool has_filler(const std::byte* p, std::size_t room, std::size_t slack,
                                                           std::uint64_t hash) noexcept {
    const std::uint64_t value = filler(hash);
    if (room < most_filled) return ((load(p) ^ value) & short_mask(slack)) == 0;
    chunk now, mask;
    std::memcpy(&now, p + room - std::max(slack, most_filled), sizeof now);
    std::memcpy(&mask, &masks[std::min(slack, most_filled)], sizeof mask);
    const chunk differs = (now ^ chunk{value, value}) & mask;
    return (differs[0] | differs[1]) == 0;
  }

  static std::uint64_t load(const std::byte* at) noexcept {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  static void store(std::byte* at, std::uint64_t word) noexcept { std::memcpy(at, &word, sizeof word); }

  std::uint64_t key_;
};

}  // namespace heapwright
