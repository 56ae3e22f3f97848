// Lines of source of interpreted calls. Most have their line themselves; those in Python have an
// instruction, and their code object's table says which line that is of.
//
// The tables, by the version of CPython that has made them (Objects/lnotab_notes.txt and
// Objects/locations.md of its sources describe them):
//
//   3.9    pairs of bytes: by how much the instruction is further, and the line
//   3.10   pairs too, each of a range of instructions; a line may be missing
//   3.11   entries of a byte or more: the first has a bit that no other has, a kind, and for how
//          many instructions of two bytes the entry stands
#pragma once

#include <cstdint>

#include "segment_reader.hpp"

namespace heapwright::tool {

/// The line at this position of a call (segment::interpreted_call_of). The function's first line
/// where that is not known; 0: that is not known either. O(table).
[[nodiscard]] unsigned line_at(const segment::interpreted_code_figures& code, std::uint32_t position);

}  // namespace heapwright::tool
