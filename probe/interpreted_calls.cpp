#include "interpreted_calls.hpp"

#include <heapwright/core/hash.hpp>

namespace heapwright::probe {

void interpreted_calls::clear() noexcept {
  count_ = 0;
  is_cut_ = false;
  hash_ = 0;
}

/// Those that do not fit are the outermost of their loop: where that is stays known.
void interpreted_calls::add(std::uint64_t word) noexcept {
  if (count_ == most) return cut();
  words_[count_] = word;
  loops_[count_++] = 0;
  hash_ = fibonacci_hash(hash_ ^ word);
  hash_ ^= hash_ >> 32;
}

void interpreted_calls::end_loop(std::uintptr_t at) noexcept {
  if (count_ != 0 && loops_[count_ - 1] == 0) loops_[count_ - 1] = at;
}

}  // namespace heapwright::probe
