// Where CPython keeps what its threads are executing: distances within its structures, in bytes,
// for each version.
//
// From 3.13 on an interpreter tells them itself, at the beginning of _PyRuntime. Those of 3.9 to
// 3.12 are listed here, as the headers of these versions have them. A build of another kind may
// have others: nothing that is read by them is believed at once (python_interpreter.hpp).
//
// How a thread's calls are linked has changed:
//
//   3.9          frame objects. Each has an evaluation loop on the processor's stack.
//   3.10         the loops are linked too, by C frames that lie on that stack
//   3.11         frames. Calls from Python to Python share a loop; the outermost frame of a loop
//                says so, and each loop has a C frame
//   3.12         behind the outermost frame of a loop stands an entry frame without code, on the
//                processor's stack
//   3.13, 3.14   so too, without C frames
#pragma once

#include <cstdint>
#include <optional>

#include "../segment/segment.hpp"

namespace heapwright::probe {

struct python_layout {
  using distance = std::uint16_t;  ///< 0: there is no such field

  segment::line_table lines{};

  // Of a thread's state.
  distance frame = 0;    ///< the innermost frame; 0: the innermost C frame has it
  distance c_frame = 0;  ///< the innermost C frame

  // Of a C frame.
  distance innermost_frame = 0;
  distance outer_c_frame = 0;

  // Of a frame.
  distance code = 0, outer_frame = 0, instruction = 0;
  distance index_unit = 0;    ///< `instruction` is an index of units of so many bytes; 0: an address
  distance owner = 0;         ///< a byte; see first_owner_of_entry_frames
  distance is_outermost = 0;  ///< a byte: whether it is the outermost one of its loop

  // Of a code object.
  distance file_name = 0, name = 0, first_line = 0, line_table = 0, instructions = 0;

  // Of objects.
  distance type = 8;
  distance text_length = 16, text_state = 32, ascii_text = 0, other_text = 0;
  distance byte_count = 16, bytes = 32;
};

/// From this value of a frame's owner on, the frame is an entry frame.
inline constexpr unsigned first_owner_of_entry_frames = 3;

class exported_symbols;

/// Of the interpreter in a file; nothing: there is none, or one of another version.
[[nodiscard]] std::optional<python_layout> python_layout_in(const exported_symbols& file) noexcept;

}  // namespace heapwright::probe
