// What an interpreter executes in one thread: the calls, the innermost first.
//
// They are in groups: each group is what one loop of the interpreter executes, which has one frame
// on the processor's stack. The outermost call of a group says where that is.
#pragma once

#include <cstdint>

namespace heapwright::probe {

/// All zero is empty.
class interpreted_calls {
 public:
  static constexpr unsigned most = 256;

  [[nodiscard]] unsigned count() const noexcept { return count_; }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }       ///< there were more
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }  ///< 0: there are none

  /// As in a stack of the segment: a word that interpreted_call_of made.
  [[nodiscard]] std::uint64_t word(unsigned i) const noexcept { return words_[i]; }
  /// Of the outermost call of a loop: an address within the loop's frame on the processor's stack,
  /// or `somewhere`: in the next frame of the loop's code. Of others 0.
  [[nodiscard]] std::uintptr_t loop_at(unsigned i) const noexcept { return loops_[i]; }
  static constexpr std::uintptr_t somewhere = 1;

  void clear() noexcept;
  void add(std::uint64_t word) noexcept;
  /// The last call is the outermost one of its loop. May be said twice.
  void end_loop(std::uintptr_t at) noexcept;
  void cut() noexcept { is_cut_ = true; }

 private:
  unsigned count_;
  bool is_cut_;
  std::uint64_t hash_;
  std::uint64_t words_[most];
  std::uintptr_t loops_[most];
};

}  // namespace heapwright::probe
