// Which blocks a program could still reach: a conservative mark phase, as a garbage collector's.
//
// A word is a reference to a block if its value is an address within the block; the upper 16 bits
// are ignored, as pointers may have tags there. So a block is taken for reachable rather than for
// lost. Only roots and live blocks are looked at: what lies in freed memory refers to nothing.
//
//   reachable         from the roots, directly or through other blocks
//   lost              not reachable, and no other lost block leads to it. Of blocks that lead to
//                     each other, and to which nothing else leads, the oldest: as a rule the others
//                     are its parts
//   indirectly lost   reachable only from a lost one, its leader: freeing what the leader leads to
//                     frees it too
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "process_memory.hpp"

namespace heapwright::tool {

struct heap_block {
  std::uint64_t address = 0, bytes = 0;
  /// The last bytes that nobody points to: there a malloc may keep what belongs to the next block.
  std::uint64_t unreferenced_tail = 0;
  std::uint64_t allocated_ns = 0;

  [[nodiscard]] std::uint64_t end() const noexcept { return address + bytes; }
};

enum class verdict : std::uint8_t { reachable, lost, indirectly_lost };

struct judgement {
  std::vector<verdict> of;            ///< by block
  std::vector<std::uint32_t> leader;  ///< by block: the lost one that leads to it; of others the block itself
};

struct root_set {
  std::vector<address_range> ranges;
  std::vector<std::uint64_t> words;  ///< registers
};

/// `blocks` are sorted by address; one may lie within another. Time: that of reading roots and
/// blocks once, lost blocks twice, with a binary search for each word that could be a reference.
[[nodiscard]] judgement judge(std::span<const heap_block> blocks, const root_set& roots, word_source& memory);

}  // namespace heapwright::tool
