// What the caller of a free says of the block.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/language.hpp>

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

}  // namespace heapwright
