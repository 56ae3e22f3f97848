// The call stacks that allocate, each once, in the segment.
//
// Chains of a hash table. A stack is complete before the chain leads to it, and never goes away, so looking one up needs no lock; two threads that add the
// same one at once may both succeed, and a reader adds up what they have.
#pragma once

#include "segment_writer.hpp"
#include "unwind.hpp"

namespace heapwright::probe {

class stack_table {
 public:
  void reset(trace::segment_header& h) noexcept;

  /// The stack of these calls, added if it is new; null when there is no room.
  [[nodiscard]] trace::stack* find_or_add(const call_memo& calls) noexcept;

  /// Takes over what is in the table of another segment.
  void copy_from(trace::segment_header& other) noexcept;

  [[nodiscard]] trace::reference refer(const trace::stack* s) const noexcept { return part_.refer(s); }
  [[nodiscard]] trace::stack& at(trace::reference r) const noexcept { return *part_.find<trace::stack>(r); }
  [[nodiscard]] process_lock& fork_lock() noexcept { return part_.fork_lock(); }

 private:
  using link = std::atomic<trace::reference>;

  void insert(trace::stack* s) noexcept;

  growing_part part_;
  link* buckets_ = nullptr;
  std::uint64_t mask_ = 0;
};

}  // namespace heapwright::probe
