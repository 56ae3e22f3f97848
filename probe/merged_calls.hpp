// A thread's calls, those in Python among the others: each evaluation loop's frame gives way to the
// calls in Python that the loop executes.
//
// Both lists are in order from the innermost call, and each group of calls in Python knows where
// the frame of its loop is. A loop whose frame is not among those that were found, as in one that
// is cut, stands before the next frame further out.
#pragma once

#include <cstdint>

#include "python_interpreter.hpp"
#include "unwind.hpp"

namespace heapwright::probe {

class merged_calls {
 public:
  void merge(const call_memo& native, const python_calls& python, const python_interpreter& interpreter) noexcept;

  // As of a call_memo. Addresses are words of a segment's stack.
  [[nodiscard]] unsigned depth() const noexcept { return depth_; }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  [[nodiscard]] std::uint64_t address(unsigned i) const noexcept { return words_[i]; }

 private:
  unsigned depth_;
  bool is_cut_;
  std::uint64_t hash_;
  std::uint64_t words_[call_memo::most + python_calls::most];
};

}  // namespace heapwright::probe
