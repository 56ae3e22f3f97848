// Which bins of an array are not empty, and the next such bin from a given one, in a few
// instructions however many there are.
//
// Two levels: a bit per bin, and a bit per word of 64 bins (Masmano and others, TLSF, 2004).
// Invariant: bit w of words_in_use_ is set <=> words_[w] != 0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/bits.hpp>

namespace heapwright {

/// A set of bins, each less than `Count`. Every operation is O(1). Not thread-safe.
template <std::size_t Count>
class bin_bitmap {
  static constexpr std::size_t words = divide_up(Count, 64);
  static_assert(Count >= 1 && words <= 64, "bin_bitmap: from 1 to 4096 bins");

 public:
  /// Instead of a bin: there is none.
  static constexpr std::size_t none = Count;

  /// Adds a bin, which may be in the set.
  constexpr void insert(std::size_t bin) noexcept {
    words_[bin / 64] |= bit(bin);
    words_in_use_ |= bit(bin / 64);
  }

  /// Takes a bin out, which may be missing.
  constexpr void erase(std::size_t bin) noexcept {
    words_[bin / 64] &= ~bit(bin);
    if (words_[bin / 64] == 0) words_in_use_ &= ~bit(bin / 64);
  }

  /// Whether the bin is in the set.
  [[nodiscard]] constexpr bool contains(std::size_t bin) const noexcept { return (words_[bin / 64] & bit(bin)) != 0; }

  /// The first bin of the set that is not below `bin`, or none. Precondition: bin < Count.
  [[nodiscard]] constexpr std::size_t first_from(std::size_t bin) const noexcept {
    std::size_t word = bin / 64;
    std::uint64_t bits = words_[word] & (~std::uint64_t{0} << (bin % 64));
    if (bits == 0) {
      // Shifted twice, because a shift by 64 has no meaning.
      const std::uint64_t later = words_in_use_ & (~std::uint64_t{0} << word << 1);
      if (later == 0) return none;
      word = static_cast<std::size_t>(std::countr_zero(later));
      bits = words_[word];
    }
    return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }

  /// The last bin of the set that is below `bin`, or none. Precondition: bin <= Count.
  [[nodiscard]] constexpr std::size_t last_before(std::size_t bin) const noexcept {
    if (bin == 0) return none;
    std::size_t word = (bin - 1) / 64;
    std::uint64_t bits = words_[word] & (~std::uint64_t{0} >> (63 - (bin - 1) % 64));
    if (bits == 0) {
      const std::uint64_t earlier = words_in_use_ & (bit(word) - 1);
      if (earlier == 0) return none;
      word = floor_log2(earlier);
      bits = words_[word];
    }
    return word * 64 + floor_log2(bits);
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << (i % 64); }

  std::uint64_t words_in_use_ = 0;
  std::uint64_t words_[words] = {};
};

}  // namespace heapwright
