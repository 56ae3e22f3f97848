// The names of the program's threads, numbered, so that a stack says by which threads its memory
// was asked for.
//
// States: the names lie in the segment, in the order in which they came. A name stays, and so does
// its number, also when its threads have ended. When there is no more room a new name has the
// number 0, as threads have whose name is not known.
#pragma once

#include "segment_writer.hpp"

namespace heapwright::probe {

class thread_names {
 public:
  /// Names go to this segment from now on.
  void reset(segment::segment_header& h) noexcept { header_ = &h; }

  /// Takes over the names that the parent's segment had when the process forked, as stacks that
  /// come from there go by their numbers.
  void inherit_from(const segment::segment_header& parents) noexcept;

  /// Of this name. O(names), without a lock where it is known.
  [[nodiscard]] std::uint32_t number_of(const segment::thread_name& name) noexcept;

  [[nodiscard]] process_lock& fork_lock() noexcept { return lock_; }

 private:
  [[nodiscard]] std::uint32_t find(const segment::thread_name& name) const noexcept;

  segment::segment_header* header_ = nullptr;
  process_lock lock_;  ///< of what adds
};

}  // namespace heapwright::probe
