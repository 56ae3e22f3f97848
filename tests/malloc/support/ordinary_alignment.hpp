// What an ordinary block is aligned to: 16. A malloc from a recipe with odd multiples of 8 is told
// so by `heapwright build --check`; there, blocks for sizes that no object with an alignment of 16
// has are aligned to 8.
#pragma once

#include <cstddef>
#include <cstdlib>

inline std::size_t ordinary_alignment(std::size_t size) {
  static const bool may_be_8 = std::getenv("HEAPWRIGHT_ALIGNED_TO_8") != nullptr;
  return may_be_8 && (size + 7) / 8 % 2 != 0 ? 8 : 16;
}
