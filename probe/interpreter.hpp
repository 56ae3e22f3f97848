// The interpreter that is in the process, and what a thread executes in its language.
//
// One language for each process: the first that is met. What the interpreters have in common is
// here; each language's part knows how to find its interpreter in a file, and how to read the calls
// of the calling thread.
//
// States      unknown    no file with an interpreter has been met in a stack, or a file was
//                        unmapped since
//             on trial   its structures have been read some times: each address is asked about
//                        before it is read, and all has to look like that interpreter's
//             believed   reads are plain ones, but for Perl, which may free what it still refers to
//             refused    something did not look as it should: its stacks stay native, for good
// Invariant   only what belongs to the calling thread is read: the frames that lead to the call,
//             and their code. These stay where they are until the call returns.
//
// Python says for each thread what it executes. The others have one place for that, or need to have
// been begun in the thread, and are asked only where the native stack has a frame of their loop:
// then this thread is within it.
#pragma once

#include <atomic>
#include <cstdint>

#include "../unwind/code_object.hpp"
#include "code_records.hpp"
#include "exported_symbols.hpp"
#include "interpreted_calls.hpp"
#include "perl_interpreter.hpp"
#include "php_interpreter.hpp"
#include "python_interpreter.hpp"
#include "ruby_interpreter.hpp"
#include "unwind.hpp"

namespace heapwright::probe {

class interpreter {
 public:
  /// Of what is found this segment is told from now on.
  void reset(segment::segment_header& h) noexcept;
  void inherit_from(segment::segment_header& parents) noexcept { codes_.inherit_from(parents); }

  /// A file whose code has been met for the first time: it may have an interpreter. Any thread.
  void look_into(const unwind::code_object& file) noexcept;

  /// A file may be unmapped soon: if it has the interpreter, that is looked for anew.
  void forget() noexcept;

  /// known: of all that will be known of this moment. none_yet: no interpreter has been found;
  /// by_native_calls: these are needed. Both times walk_with has the rest.
  enum class answer : std::uint8_t { known, none_yet, by_native_calls };

  /// What the calling thread executes; nothing where that is not known.
  [[nodiscard]] answer walk(interpreted_calls& calls) noexcept;

  /// So too, after the walk of the thread's native stack.
  void walk_with(const call_memo& native, interpreted_calls& calls) noexcept;

  /// Whether a return address is within the interpreter's loop. O(1).
  [[nodiscard]] bool is_in_loop(std::uintptr_t pc) const noexcept { return pc > loop_.begin && pc <= loop_.end; }

  [[nodiscard]] code_records& codes() noexcept { return codes_; }

 private:
  enum class state : std::uint8_t { unknown, being_found, on_trial, believed, refused };
  enum class language : std::uint8_t { python, php, ruby, perl };

  template <class Part>
  bool take(const exported_symbols& symbols, Part& part, language of) noexcept;
  void walk_in(state is, interpreted_calls& calls) noexcept;
  [[nodiscard]] bool read(memory_reader& by, interpreted_calls& calls) noexcept;

  std::atomic<state> state_{state::unknown};
  language language_ = language::python;
  std::atomic<unsigned> trials_{0};
  segment::segment_header* header_ = nullptr;
  code_range loop_;
  python_interpreter python_;
  php_interpreter php_;
  ruby_interpreter ruby_;
  perl_interpreter perl_;
  code_records codes_;
};

extern constinit interpreter the_interpreter [[gnu::visibility("hidden")]];

}  // namespace heapwright::probe
