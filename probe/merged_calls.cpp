#include "merged_calls.hpp"

namespace heapwright::probe {
namespace {

/// Behind the outermost call of the group that begins there; 0: the group has no end.
unsigned end_of_group(const interpreted_calls& calls, unsigned first) noexcept {
  for (unsigned i = first; i < calls.count(); ++i)
    if (calls.loop_at(i) != 0) return i + 1;
  return 0;
}

}  // namespace

void merged_calls::merge(const call_memo& native, const interpreted_calls& interpreted,
                         const interpreter& language) noexcept {
  depth_ = 0;
  hash_ = fibonacci_hash(native.hash() ^ interpreted.hash());
  hash_ ^= hash_ >> 32;
  is_cut_ = native.is_cut() || interpreted.is_cut();
  unsigned outermost_loop = 0;
  for (unsigned i = 0; i < native.depth(); ++i)
    if (language.is_in_loop(native.address(i))) outermost_loop = i;
  unsigned next = 0;
  for (unsigned i = 0; i < native.depth(); ++i) {
    const std::uintptr_t begin = native.frame_at(i);
    const std::uintptr_t end = i + 1 < native.depth() ? native.frame_at(i + 1) : ~std::uintptr_t{0};
    bool is_loop = false;
    while (next < interpreted.count()) {
      const unsigned behind = end_of_group(interpreted, next);
      if (behind == 0) break;
      const std::uintptr_t loop = interpreted.loop_at(behind - 1);
      const bool is_known = loop != interpreted_calls::somewhere;
      if (is_loop && (is_known || i != outermost_loop)) break;
      if (is_known ? loop >= end : !language.is_in_loop(native.address(i))) break;
      is_loop = !is_known || loop >= begin;
      while (next < behind) words_[depth_++] = interpreted.word(next++);
    }
    if (!is_loop) words_[depth_++] = native.address(i);
  }
  if (next < interpreted.count()) is_cut_ = true;
}

}  // namespace heapwright::probe
