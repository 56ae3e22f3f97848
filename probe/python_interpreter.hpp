// What a thread executes in Python: read from the interpreter's own structures, where CPython 3.9
// to 3.14 is in the process.
//
// States      unknown    no file with an interpreter has been met in a stack, or a file was
//                        unmapped since
//             on trial   its structures have been read some times: each address is asked about
//                        before it is read, and all has to look like Python's
//             believed   reads are plain ones
//             refused    something did not look like Python's: its stacks stay native, for good
// Invariant   only what belongs to the calling thread is read: its thread state, the frames that
//             lead to the call, and their code. These stay where they are until the call returns.
//
// Two functions of the interpreter are called. Each reads one word and takes no lock:
// PyGILState_GetThisThreadState, by pthread_getspecific, and _PyThreadState_UncheckedGet, which
// since 3.12 reads a thread-local variable. They are what finds that word in each build.
#pragma once

#include <atomic>
#include <cstdint>

#include "../unwind/code_object.hpp"
#include "python_codes.hpp"
#include "python_layout.hpp"

namespace heapwright::probe {

/// The calls in Python of one thread, the innermost first. All zero is empty.
class python_calls {
 public:
  static constexpr unsigned most = 256;

  [[nodiscard]] unsigned count() const noexcept { return count_; }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }       ///< there were more
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }  ///< 0: there are none

  /// As in a stack of the segment: a word that python_call_of made.
  [[nodiscard]] std::uint64_t word(unsigned i) const noexcept { return words_[i]; }
  /// Of the outermost call of an evaluation loop: an address within the loop's frame on the
  /// processor's stack, or `somewhere`. Of others 0.
  [[nodiscard]] std::uintptr_t loop_at(unsigned i) const noexcept { return loops_[i]; }
  static constexpr std::uintptr_t somewhere = 1;

  void clear() noexcept;
  void add(std::uint64_t word) noexcept;
  void end_loop(std::uintptr_t at) noexcept;
  void cut() noexcept { is_cut_ = true; }

 private:
  unsigned count_;
  bool is_cut_;
  std::uint64_t hash_;
  std::uint64_t words_[most];
  std::uintptr_t loops_[most];
};

class python_interpreter {
 public:
  /// Of what is found this segment is told from now on.
  void reset(segment::segment_header& h) noexcept;
  void inherit_from(segment::segment_header& parents) noexcept { codes_.inherit_from(parents); }

  /// A file whose code has been met for the first time: it may have the interpreter. Any thread.
  void look_into(const unwind::code_object& file) noexcept;

  /// A file may be unmapped soon: if it has the interpreter, that is looked for anew.
  void forget() noexcept;

  /// What the calling thread executes in Python; nothing where that is not known. False: no
  /// interpreter has been found yet.
  bool walk(python_calls& calls) noexcept;

  /// The evaluation loop's code, for versions that do not say where a loop's frame is. O(1).
  [[nodiscard]] bool is_in_loop(std::uintptr_t pc) const noexcept { return pc > loop_begin_ && pc <= loop_end_; }

  [[nodiscard]] python_codes& codes() noexcept { return codes_; }

 private:
  enum class state : std::uint8_t { unknown, being_found, on_trial, believed, refused };
  using state_of_thread = void*() noexcept;

  [[nodiscard]] std::uintptr_t thread_state() const noexcept;
  void try_walk(python_calls& calls) noexcept;
  [[nodiscard]] bool is_shim(std::uintptr_t code) const noexcept;
  template <class Reader>
  [[nodiscard]] bool add_call(Reader read, std::uintptr_t frame, python_calls& calls) noexcept;
  template <class Reader>
  [[nodiscard]] bool walk_with(Reader read, python_calls& calls) noexcept;

  std::atomic<state> state_{state::unknown};
  segment::segment_header* header_ = nullptr;
  std::atomic<unsigned> trials_{0};
  python_layout layout_;
  state_of_thread* by_gil_state_ = nullptr;
  state_of_thread* current_ = nullptr;  ///< null: not of use in this version
  std::uintptr_t code_type_ = 0, text_type_ = 0;
  std::uintptr_t loop_begin_ = 0, loop_end_ = 0;
  python_codes codes_;
};

extern constinit python_interpreter the_python [[gnu::visibility("hidden")]];

}  // namespace heapwright::probe
