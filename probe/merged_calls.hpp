// A thread's calls, interpreted ones among the others: the frame of each loop of the interpreter
// gives way to the calls that the loop executes.
//
// Both lists are in order from the innermost call, and each group of interpreted calls may know
// where the frame of its loop is. A loop whose frame is not among those that were found, as in one
// that is cut, stands before the next frame further out. A group that does not know that gets the
// next frame of the loop's code; the outermost such frame gets all groups that are left.
#pragma once

#include <cstdint>

#include "interpreter.hpp"
#include "unwind.hpp"

namespace heapwright::probe {

class merged_calls {
 public:
  void merge(const call_memo& native, const interpreted_calls& interpreted, const interpreter& language) noexcept;

  // As of a call_memo. Addresses are words of a segment's stack.
  [[nodiscard]] unsigned depth() const noexcept { return depth_; }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  [[nodiscard]] std::uint64_t address(unsigned i) const noexcept { return words_[i]; }

 private:
  unsigned depth_;
  bool is_cut_;
  std::uint64_t hash_;
  std::uint64_t words_[call_memo::most + interpreted_calls::most];
};

}  // namespace heapwright::probe
