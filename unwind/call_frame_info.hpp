// How to get from a function's frame to its caller's, for one address of code: read from the tables
// that every program has for exceptions (.eh_frame; DWARF 5, 6.4, and the Linux Standard Base's
// .eh_frame_hdr).
//
// Of all registers only three matter: the stack pointer, the frame pointer and where the return
// address is. What compilers write about them fits into eight bytes; what does not (hand-written
// assembly that keeps its frame elsewhere) ends the walk.
#pragma once

#include <cstdint>

#include "code_object.hpp"

namespace heapwright::unwind {

/// CFA: the stack pointer as it was before the call, as DWARF says ("canonical frame address").
enum class frame_kind : std::uint8_t {
  none,           ///< not known, or the outermost frame
  stack_pointer,  ///< CFA = stack pointer + cfa_offset
  frame_pointer,  ///< CFA = frame pointer + cfa_offset
  realigned,  ///< CFA = what is at frame pointer + cfa_offset; the caller's frame pointer is at frame pointer + 8 times frame_pointer_at
  on_other_stack,  ///< of Go's runtime, which calls C on a stack of its own: at stack pointer + cfa_offset is what it returns to (frame.hpp)
  guessed,  ///< code without tables, as just-in-time compilers make it, and V8 its built-in functions, which are in a file: taken for code that keeps frame pointers
};

struct frame_rule {
  static constexpr std::int8_t beside_frame_pointer = 1;

  std::int32_t cfa_offset = 0;
  std::int16_t frame_pointer_at = 0;  ///< CFA + 8 times this has the caller's frame pointer; 0: it is unchanged
  /// CFA + 8 times this has the return address; 0: it is in the link register;
  /// beside_frame_pointer: it follows the caller's frame pointer.
  std::int8_t return_address_at = 0;
  frame_kind kind = frame_kind::none;

  [[nodiscard]] int return_address_words() const noexcept {
    return return_address_at == beside_frame_pointer ? frame_pointer_at + 1 : return_address_at;
  }
};
static_assert(sizeof(frame_rule) == 8);

/// The rule for the code at `pc`. If it is of a file that is mapped, `object` is told; its begin is
/// 0 otherwise. Searches and interprets tables: for code that is met for the first time.
[[nodiscard]] frame_rule find_frame_rule(std::uintptr_t pc, code_object& object) noexcept;

}  // namespace heapwright::unwind
