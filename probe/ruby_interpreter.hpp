// What a thread executes in Ruby: as the interpreter itself tells profilers.
//
// rb_profile_frames is made to be called from signal handlers, and so are the functions that tell
// of a frame, as far as they are called here: they read, and allocate nothing. They rely on the
// thread being one of Ruby's that holds the interpreter's lock, and on no garbage collection that
// moves objects meanwhile; both are asked first. The questions themselves need a thread that has
// been in Ruby before, as what they read is the thread's own (interpreter.hpp).
//
// Frames of functions in C end a group: what such a function calls in Ruby is executed by a loop
// (rb_vm_exec) of its own.
#pragma once

#include <cstdint>

#include "code_records.hpp"
#include "exported_symbols.hpp"
#include "interpreted_calls.hpp"
#include "memory_reader.hpp"

namespace heapwright::probe {

class ruby_interpreter {
 public:
  /// The code of its loop; empty: it is not in this file, or does not export all that is needed.
  [[nodiscard]] code_range find_in(const exported_symbols& symbols) noexcept;

  /// What the calling thread, which is within the loop, executes. False: what was found is not
  /// Ruby's.
  [[nodiscard]] bool walk(memory_reader& by, code_records& codes, interpreted_calls& calls) const noexcept;

 private:
  using value = std::uintptr_t;
  using frames_function = int(int, int, value*, int*) noexcept;
  using value_function = value(value) noexcept;
  using question = int() noexcept;

  [[nodiscard]] bool describe(value frame, value label, value path, described_code& is) const noexcept;

  question* holds_lock_ = nullptr;
  question* is_collecting_ = nullptr;
  frames_function* frames_ = nullptr;
  value_function* label_ = nullptr;
  value_function* path_ = nullptr;
  value_function* first_line_ = nullptr;
  value_function* name_of_class_ = nullptr;
  bool has_short_texts_ = false;  ///< a text within its object has its length in the object's flags: before 3.2
};

}  // namespace heapwright::probe
