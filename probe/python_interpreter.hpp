// What a thread executes in Python: read from the interpreter's own structures, where CPython 3.9
// to 3.14 is in the process.
//
// Two functions of the interpreter are called. Each reads one word and takes no lock:
// PyGILState_GetThisThreadState, by pthread_getspecific, and _PyThreadState_UncheckedGet, which
// since 3.12 reads a thread-local variable. They are what finds that word in each build.
#pragma once

#include <cstdint>

#include "code_records.hpp"
#include "exported_symbols.hpp"
#include "interpreted_calls.hpp"
#include "memory_reader.hpp"
#include "python_layout.hpp"

namespace heapwright::probe {

class python_interpreter {
 public:
  /// The code of its evaluation loop; empty: it is not in this file. Versions that do not say where
  /// a loop's frame is need it.
  [[nodiscard]] code_range find_in(const exported_symbols& symbols) noexcept;

  /// What the calling thread executes. False: what was found is not Python's.
  [[nodiscard]] bool walk(memory_reader& by, code_records& codes, interpreted_calls& calls) const noexcept;

 private:
  using state_of_thread = void*() noexcept;

  [[nodiscard]] std::uintptr_t thread_state() const noexcept;
  [[nodiscard]] bool is_shim(std::uintptr_t code) const noexcept;
  [[nodiscard]] bool add_call(memory_reader& by, std::uintptr_t frame, code_records& codes,
                              interpreted_calls& calls) const noexcept;

  python_layout layout_;
  state_of_thread* by_gil_state_ = nullptr;
  state_of_thread* current_ = nullptr;  ///< null: not of use in this version
  std::uintptr_t code_type_ = 0, text_type_ = 0;
};

}  // namespace heapwright::probe
