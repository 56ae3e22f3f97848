#include "python_interpreter.hpp"

#include <cstring>

#include <heapwright/core/hash.hpp>

#include "../unwind/frame.hpp"
#include "exported_symbols.hpp"
#include "readable.hpp"

namespace heapwright::probe {

using unwind::word_at;

constinit python_interpreter the_python;

namespace {

constexpr unsigned trials_until_believed = 64;

/// Reads what is there.
struct plain_reader {
  static bool word(std::uintptr_t at, std::uintptr_t& value) noexcept {
    value = word_at(at);
    return true;
  }
};

/// Reads what may not be there, and is not aligned where it is something else.
struct careful_reader {
  static bool word(std::uintptr_t at, std::uintptr_t& value) noexcept {
    if (at % sizeof value != 0 || at < 4096 || !is_readable(at)) return false;
    value = word_at(at);
    return true;
  }
};

/// Of a byte, or of a number of four bytes, in the word that it is in: fields are in few places,
/// and a word can be asked about.
std::uint64_t part_of(std::uintptr_t word, unsigned distance, unsigned bytes) noexcept {
  const std::uint64_t shifted = word >> distance % sizeof word * 8;
  return bytes == 4 ? static_cast<std::uint32_t>(shifted) : static_cast<std::uint8_t>(shifted);
}

constexpr std::uintptr_t word_with(std::uintptr_t at) noexcept { return at & ~(sizeof at - 1); }

}  // namespace

void python_calls::clear() noexcept {
  count_ = 0;
  is_cut_ = false;
  hash_ = 0;
}

/// Those that do not fit are the outermost of their loop: where that is stays known.
void python_calls::add(std::uint64_t word) noexcept {
  if (count_ == most) return cut();
  words_[count_] = word;
  loops_[count_++] = 0;
  hash_ = fibonacci_hash(hash_ ^ word);
  hash_ ^= hash_ >> 32;
}

void python_calls::end_loop(std::uintptr_t at) noexcept {
  if (count_ != 0 && loops_[count_ - 1] == 0) loops_[count_ - 1] = at;
}

void python_interpreter::reset(segment::segment_header& h) noexcept {
  header_ = &h;
  h.python_at.store(loop_begin_, segment::relaxed);
  codes_.reset(h);
}

void python_interpreter::look_into(const unwind::code_object& file) noexcept {
  if (state_.load(std::memory_order_relaxed) != state::unknown) return;
  const exported_symbols symbols(file);
  const auto layout = python_layout_in(symbols);
  if (!layout) return;
  const auto address = [&](const char* name) { return reinterpret_cast<std::uintptr_t>(symbols.find(name)); };
  const std::uintptr_t by_gil_state = address("PyGILState_GetThisThreadState");
  const std::uintptr_t code_type = address("PyCode_Type"), text_type = address("PyUnicode_Type");
  const std::uintptr_t loop = address("_PyEval_EvalFrameDefault");
  if (by_gil_state == 0 || code_type == 0 || text_type == 0 || loop == 0) return;
  state expected = state::unknown;
  if (!state_.compare_exchange_strong(expected, state::being_found, std::memory_order_relaxed)) return;
  layout_ = *layout;
  by_gil_state_ = reinterpret_cast<state_of_thread*>(by_gil_state);
  // Before 3.12 it is the state of the thread that holds the lock, which may be another one.
  const bool is_of_this_thread = layout_.owner != 0;
  current_ = is_of_this_thread ? reinterpret_cast<state_of_thread*>(address("_PyThreadState_UncheckedGet")) : nullptr;
  code_type_ = code_type;
  text_type_ = text_type;
  loop_begin_ = loop;
  loop_end_ = loop + symbols.bytes_of("_PyEval_EvalFrameDefault");
  header_->python_at.store(loop_begin_, segment::relaxed);
  state_.store(state::on_trial, std::memory_order_release);
}

void python_interpreter::forget() noexcept {
  for (state is : {state::on_trial, state::believed})
    if (state_.compare_exchange_strong(is, state::unknown, std::memory_order_relaxed))
      trials_.store(0, std::memory_order_relaxed);
}

/// A thread that has no state by the first function has never executed Python. Only the second one
/// knows of an interpreter within the interpreter.
std::uintptr_t python_interpreter::thread_state() const noexcept {
  void* const known = by_gil_state_();
  if (known == nullptr || current_ == nullptr) return reinterpret_cast<std::uintptr_t>(known);
  void* const now = current_();
  return reinterpret_cast<std::uintptr_t>(now != nullptr ? now : known);
}

bool python_interpreter::walk(python_calls& calls) noexcept {
  calls.clear();
  const state is = state_.load(std::memory_order_acquire);
  if (is == state::believed) {
    (void)walk_with(plain_reader{}, calls);
  } else if (is == state::on_trial) {
    try_walk(calls);
  }
  return is != state::unknown && is != state::being_found;
}

void python_interpreter::try_walk(python_calls& calls) noexcept {
  if (!walk_with(careful_reader{}, calls)) {
    calls.clear();
    return state_.store(state::refused, std::memory_order_relaxed);
  }
  if (calls.count() != 0 && trials_.fetch_add(1, std::memory_order_relaxed) + 1 == trials_until_believed)
    state_.store(state::believed, std::memory_order_relaxed);
}

/// Of code that the interpreter puts between a class and its __init__, from 3.13 on: name
/// and file are one text there, and there is no line. sys._getframe does not show it.
bool python_interpreter::is_shim(std::uintptr_t code) const noexcept {
  return word_at(code + layout_.name) == word_at(code + layout_.file_name) &&
         part_of(word_at(word_with(code + layout_.first_line)), layout_.first_line, 4) == 0;
}

/// The frame's call. False: what was found is not Python's.
template <class Reader>
bool python_interpreter::add_call(Reader read, std::uintptr_t frame, python_calls& calls) noexcept {
  const python_layout& l = layout_;
  std::uintptr_t code = 0, type = 0, word = 0;
  constexpr std::uintptr_t tag = 3;  // of references, since 3.14
  if (!read.word(frame + l.code, code)) return false;
  code &= ~tag;
  if (code == 0 || !read.word(code + l.type, type) || type != code_type_) return false;
  if (is_shim(code)) return true;
  if (!read.word(word_with(frame + l.instruction), word)) return false;
  const auto known = codes_.find_or_add(code, l, text_type_);
  if (!known) return false;
  // Before the first instruction it is negative.
  const auto index = static_cast<std::int32_t>(part_of(word, l.instruction, 4));
  const std::int64_t distance =
      l.index_unit != 0 ? std::int64_t{index} * l.index_unit : static_cast<std::int64_t>(word - code - l.instructions);
  calls.add(segment::python_call_of(*known, distance));
  return true;
}

/// False: what was found is not Python's.
template <class Reader>
bool python_interpreter::walk_with(Reader read, python_calls& calls) noexcept {
  const python_layout& l = layout_;
  constexpr unsigned most_frames = 4 * python_calls::most;  // a ring would have no end
  const std::uintptr_t thread = thread_state();
  if (thread == 0) return true;
  std::uintptr_t c_frame = 0, frame = 0, word = 0;
  if (l.c_frame != 0 && !read.word(thread + l.c_frame, c_frame)) return false;
  if (l.frame == 0 && c_frame == 0) return true;
  const std::uintptr_t frame_at = l.frame != 0 ? thread + l.frame : c_frame + l.innermost_frame;
  if (!read.word(frame_at, frame)) return false;
  for (unsigned n = 0; frame != 0; ++n) {
    if (n == most_frames) {
      calls.end_loop(python_calls::somewhere);
      calls.cut();
      return true;
    }
    if (l.owner != 0) {
      if (!read.word(word_with(frame + l.owner), word)) return false;
      if (part_of(word, l.owner, 1) >= first_owner_of_entry_frames) {
        calls.end_loop(frame);
        if (!read.word(frame + l.outer_frame, frame)) return false;
        continue;
      }
    }
    if (!add_call(read, frame, calls)) return false;
    if (l.owner == 0) {
      if (l.is_outermost != 0 && !read.word(word_with(frame + l.is_outermost), word)) return false;
      if (l.is_outermost == 0 || part_of(word, l.is_outermost, 1) != 0) {
        calls.end_loop(c_frame != 0 ? c_frame : python_calls::somewhere);
        if (c_frame != 0 && !read.word(c_frame + l.outer_c_frame, c_frame)) return false;
      }
    }
    if (!read.word(frame + l.outer_frame, frame)) return false;
  }
  return true;
}

}  // namespace heapwright::probe
