// The calls that led here. Each step is a look into a table of rules that have been worked out
// before (call_frame_info.hpp), and most steps need not be taken: a thread's stack mostly changes
// at its inner end. The walk goes outwards until it meets a frame of the last walk; if all return
// addresses and frame pointers that the last walk has read from there on are still what they were,
// so are the calls, and comparing them takes no look-up.
//
// A program asks for memory from few places, again and again. So whole stacks can be remembered
// too: where each return address lay, and what it was. One that is met again takes a comparison of
// each of these words, and no walk.
//
// Frame pointers are compared only where a frame further out is found by them: elsewhere the
// register has whatever the program keeps there.
//
// Invariant of a call_memo: entries[i] is the frame that entries[i + 1], further in, returns to;
// entries[0] is the outermost, or, of a stack deeper than `most`, where the walk has ended.
//
// Never reads beyond the stack: a frame lies above the one before it and below the stack's end, or
// the walk ends. Allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/hash.hpp>

#include "../unwind/frame.hpp"

namespace heapwright::probe {

using unwind::code_object;
using unwind::current_state;
using unwind::machine_state;

/// What the last walk of one thread has found. All zero is empty.
class call_memo {
 public:
  static constexpr unsigned most = 128;

  /// Return addresses; none of the probe's own.
  [[nodiscard]] unsigned depth() const noexcept { return depth_; }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return entries_[depth_ - 1].hash;
  }                                                               ///< of all of them; depth() > 0
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }  ///< there were more

  /// The i-th, from the innermost.
  [[nodiscard]] std::uintptr_t address(unsigned i) const noexcept { return entries_[depth_ - 1 - i].at.pc; }
  /// Where its frame begins. It ends where that of the next one begins.
  [[nodiscard]] std::uintptr_t frame_at(unsigned i) const noexcept { return entries_[depth_ - 1 - i].at.sp; }

  /// Walks from `from`, a state of the calling thread, whose memo this is. `stack_end`: where its
  /// stack ends, 0: not known. `new_object` is called for files whose code is met for the first
  /// time.
  void walk(machine_state from, std::uintptr_t stack_end, void (*new_object)(const code_object&) noexcept) noexcept;

  /// What has been remembered of these very calls; 0: nothing. `caller`: where the function that is
  /// at `from` returns to. `interpreted`: a hash of the calls that an interpreter executes there.
  [[nodiscard]] std::uint32_t recall(const machine_state& from, std::uintptr_t caller, std::uint64_t interpreted,
                                     std::uintptr_t stack_end) const noexcept;

  /// Remembers this of the calls that were found by the last walk, which was from there.
  void remember(const machine_state& from, std::uintptr_t caller, std::uint64_t interpreted,
                std::uint32_t what) noexcept;
  void forget_remembered() noexcept;

 private:
  struct entry {
    machine_state at;
    std::uintptr_t return_address_at,
        frame_pointer_at;  ///< read from there to get to the next one; 0: not, or not only
    std::uint64_t hash;    ///< of this and all further out
    bool uses_frame_pointer;
    bool needs_frame_pointer;  ///< it does, or one further out does, by the frame pointer that it has had here
  };

  /// A stack as it was: which words there were, from the innermost.
  struct remembered_stack {
    static constexpr unsigned most_words = 64;

    machine_state from;
    std::uint64_t generation;
    std::uint64_t interpreted;
    std::uint32_t what;  ///< 0: none
    std::uint16_t count;
    bool needs_frame_pointer;
    std::uint32_t at[most_words];  ///< bytes from the stack pointer
    std::uintptr_t words[most_words];

    [[nodiscard]] bool is_unchanged() const noexcept;
    bool add(std::uintptr_t address) noexcept;
  };

  static constexpr unsigned sets = 16, ways = 4;

  static unsigned set_of(const machine_state& from, std::uintptr_t caller, std::uint64_t interpreted) noexcept {
    return static_cast<unsigned>(fibonacci_hash(from.sp ^ caller << 20 ^ interpreted) >> 60);
  }
  static_assert(sets == 1 << 4);

  static bool still_leads_to(const entry& inner, entry& outer) noexcept;
  void keep(unsigned count, unsigned n) noexcept;

  entry entries_[most];
  entry inner_[most];  ///< of a walk, from the innermost: too much for the program's stack, which may be a small one
  unsigned count_;
  unsigned depth_;
  bool is_cut_;
  bool is_known_;  ///< the last walk was on the thread's own stack
  std::uint64_t generation_;
  std::uintptr_t goroutine_;  ///< the last one that has been readable; 0: none
  std::uint8_t next_way_[sets];
  remembered_stack remembered_[sets][ways];
};

/// After code has been unmapped: what is known of it may be of other code soon.
void forget_rules() noexcept;

}  // namespace heapwright::probe
