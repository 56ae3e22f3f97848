// What an arena notes in the padding in front of a block, so that the free of the block skips it.
//
// A word before a padded block holds the previous seam. That is a list of all padded blocks, from
// the latest on, without a header per block:
//
//   8 bytes of padding:   [ previous seam ] block
//   more:                 [ ... | bytes of padding | previous seam + 1 ] block
//
// Blocks are aligned to 8 bytes at least, so that the lowest bit of an address is free.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/poison.hpp>

namespace heapwright {

struct arena_seam {
  std::uintptr_t previous;  ///< the seam before this one; 0: there is none
  std::size_t padding;      ///< bytes in front of the block, a multiple of 8 above 0

  /// Writes this in front of `block`.
  void write(std::uintptr_t block) const noexcept {
    const bool is_long = padding > word;
    at(block - word) = previous + (is_long ? 1 : 0);
    if (is_long) at(block - 2 * word) = padding;
  }

  [[nodiscard]] static arena_seam read(std::uintptr_t block) noexcept {
    const std::uintptr_t previous = at(block - word);
    if ((previous & 1) == 0) return {previous, word};
    return {previous - 1, at(block - 2 * word)};
  }

 private:
  static constexpr std::size_t word = sizeof(std::uintptr_t);

  [[nodiscard]] static hidden<std::uintptr_t>& at(std::uintptr_t address) noexcept {
    return *reinterpret_cast<hidden<std::uintptr_t>*>(address);
  }
};

}  // namespace heapwright
