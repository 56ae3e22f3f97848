// Lines of source in Python: what a code object's table says of an instruction.
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

/// The line of the instruction at this distance from the first one, in bytes. The function's first
/// line where the table does not say. O(table).
[[nodiscard]] unsigned python_line(const segment::python_code_figures& code, std::uint32_t instruction);

}  // namespace heapwright::tool
