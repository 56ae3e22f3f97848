#include "python_interpreter.hpp"

#include "../unwind/frame.hpp"
#include "python_code.hpp"

namespace heapwright::probe {

using unwind::word_at;

code_range python_interpreter::find_in(const exported_symbols& symbols) noexcept {
  const auto layout = python_layout_in(symbols);
  if (!layout) return {};
  const auto address = [&](const char* name) { return reinterpret_cast<std::uintptr_t>(symbols.find(name)); };
  const std::uintptr_t by_gil_state = address("PyGILState_GetThisThreadState");
  code_type_ = address("PyCode_Type");
  text_type_ = address("PyUnicode_Type");
  if (by_gil_state == 0 || code_type_ == 0 || text_type_ == 0) return {};
  layout_ = *layout;
  by_gil_state_ = reinterpret_cast<state_of_thread*>(by_gil_state);
  // Before 3.12 it is the state of the thread that holds the lock, which may be another one.
  const bool is_of_this_thread = layout_.owner != 0;
  current_ = is_of_this_thread ? reinterpret_cast<state_of_thread*>(address("_PyThreadState_UncheckedGet")) : nullptr;
  return symbols.code_of("_PyEval_EvalFrameDefault");
}

/// A thread that has no state by the first function has never executed Python. Only the second one
/// knows of an interpreter within the interpreter.
std::uintptr_t python_interpreter::thread_state() const noexcept {
  void* const known = by_gil_state_();
  if (known == nullptr || current_ == nullptr) return reinterpret_cast<std::uintptr_t>(known);
  void* const now = current_();
  return reinterpret_cast<std::uintptr_t>(now != nullptr ? now : known);
}

/// Of code that the interpreter puts between a class and its __init__, from 3.13 on: name
/// and file are one text there, and there is no line. sys._getframe does not show it.
bool python_interpreter::is_shim(std::uintptr_t code) const noexcept {
  std::int32_t first_line = 0;
  std::memcpy(&first_line, reinterpret_cast<const void*>(code + layout_.first_line), sizeof first_line);
  return word_at(code + layout_.name) == word_at(code + layout_.file_name) && first_line == 0;
}

/// The frame's call. False: what was found is not Python's.
bool python_interpreter::add_call(memory_reader& by, std::uintptr_t frame, code_records& codes,
                                  interpreted_calls& calls) const noexcept {
  const python_layout& l = layout_;
  std::uintptr_t code = 0, type = 0, instruction = 0;
  constexpr std::uintptr_t tag = 3;  // of references, since 3.14
  if (!by.word(frame + l.code, code)) return false;
  code &= ~tag;
  if (code == 0 || !by.word(code + l.type, type) || type != code_type_) return false;
  if (is_shim(code)) return true;
  // An index is in four bytes, and negative before the first instruction.
  std::int32_t index = 0;
  if (l.index_unit != 0 ? !by.number(frame + l.instruction, index) : !by.word(frame + l.instruction, instruction))
    return false;
  const auto known = codes.find_or_add(code, version_of_python_code(code, l), [&](described_code& is) {
    return describe_python_code(code, l, text_type_, is);
  });
  if (!known) return false;
  const std::int64_t distance = l.index_unit != 0 ? std::int64_t{index} * l.index_unit
                                                  : static_cast<std::int64_t>(instruction - code - l.instructions);
  calls.add(segment::interpreted_call_of(*known, distance));
  return true;
}

bool python_interpreter::walk(memory_reader& by, code_records& codes, interpreted_calls& calls) const noexcept {
  const python_layout& l = layout_;
  constexpr unsigned most_frames = 4 * interpreted_calls::most;  // a ring would have no end
  const std::uintptr_t thread = thread_state();
  if (thread == 0) return true;
  std::uintptr_t c_frame = 0, frame = 0;
  if (l.c_frame != 0 && !by.word(thread + l.c_frame, c_frame)) return false;
  if (l.frame == 0 && c_frame == 0) return true;
  const std::uintptr_t frame_at = l.frame != 0 ? thread + l.frame : c_frame + l.innermost_frame;
  if (!by.word(frame_at, frame)) return false;
  for (unsigned n = 0; frame != 0; ++n) {
    if (n == most_frames) {
      calls.end_loop(interpreted_calls::somewhere);
      calls.cut();
      return true;
    }
    std::uint8_t flag = 0;
    if (l.owner != 0) {
      if (!by.number(frame + l.owner, flag)) return false;
      if (flag >= first_owner_of_entry_frames) {
        calls.end_loop(frame);
        if (!by.word(frame + l.outer_frame, frame)) return false;
        continue;
      }
    }
    if (!add_call(by, frame, codes, calls)) return false;
    if (l.owner == 0) {
      if (l.is_outermost != 0 && !by.number(frame + l.is_outermost, flag)) return false;
      if (l.is_outermost == 0 || flag != 0) {
        calls.end_loop(c_frame != 0 ? c_frame : interpreted_calls::somewhere);
        if (c_frame != 0 && !by.word(c_frame + l.outer_c_frame, c_frame)) return false;
      }
    }
    if (!by.word(frame + l.outer_frame, frame)) return false;
  }
  return true;
}

}  // namespace heapwright::probe
