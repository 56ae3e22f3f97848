#include "merged_calls.hpp"

namespace heapwright::probe {

void merged_calls::merge(const call_memo& native, const python_calls& python,
                         const python_interpreter& interpreter) noexcept {
  depth_ = 0;
  hash_ = fibonacci_hash(native.hash() ^ python.hash());
  hash_ ^= hash_ >> 32;
  is_cut_ = native.is_cut() || python.is_cut();
  unsigned next = 0;
  for (unsigned i = 0; i < native.depth(); ++i) {
    const std::uintptr_t begin = native.frame_at(i);
    const std::uintptr_t end = i + 1 < native.depth() ? native.frame_at(i + 1) : ~std::uintptr_t{0};
    bool is_loop = false;
    while (next < python.count() && !is_loop) {
      unsigned last = next;
      while (last < python.count() && python.loop_at(last) == 0) ++last;
      if (last == python.count()) break;
      const std::uintptr_t loop = python.loop_at(last);
      const bool is_known = loop != python_calls::somewhere;
      if (is_known ? loop >= end : !interpreter.is_in_loop(native.address(i))) break;
      is_loop = !is_known || loop >= begin;
      while (next <= last) words_[depth_++] = python.word(next++);
    }
    if (!is_loop) words_[depth_++] = native.address(i);
  }
  if (next < python.count()) is_cut_ = true;
}

}  // namespace heapwright::probe
