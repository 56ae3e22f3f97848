// The call stacks that allocate, in the segment: each once for every thread slot in which it was
// met, so that a thread counts there without locked instructions, and once for everyone; and all
// these for each name of threads (segment.hpp).
//
// Chains of a hash table. A stack is complete before the chain leads to it, and never goes away, so
// looking one up needs no lock; two threads that add the same one at once may both succeed, and a
// reader adds up what they have. When the room is half used up, new stacks are everyone's: those
// are needed whatever happens, and one that belongs to somebody is only faster.
#pragma once

#include "merged_calls.hpp"
#include "segment_writer.hpp"
#include "unwind.hpp"

namespace heapwright::probe {

/// Which threads a stack counts for.
struct stack_owner {
  std::uint32_t slot;  ///< 0: all
  std::uint32_t name;  ///< number in thread_names

  friend bool operator==(const stack_owner&, const stack_owner&) = default;
};

class stack_table {
 public:
  void reset(segment::segment_header& h) noexcept;

  /// The stack of these calls (a call_memo, or merged_calls) with this owner, or with slot 0,
  /// added if it is new; null when there is no room.
  template <class Calls>
  [[nodiscard]] segment::stack* find_or_add(const Calls& calls, stack_owner owner) noexcept;

  /// The stack of the same name with an owner for whom all threads count; null when there is no
  /// room.
  [[nodiscard]] segment::stack* everyones(segment::stack& s) noexcept;

  /// A stack of the parent's segment, here with inherited_owner; null when there is no room.
  [[nodiscard]] segment::stack* inherited(const segment::stack& parents) noexcept;

  [[nodiscard]] segment::reference refer(const segment::stack* s) const noexcept { return part_.refer(s); }
  [[nodiscard]] segment::stack& at(segment::reference r) const noexcept { return *part_.find<segment::stack>(r); }
  [[nodiscard]] process_lock& fork_lock() noexcept { return part_.fork_lock(); }

 private:
  using link = std::atomic<segment::reference>;

  [[nodiscard]] link& bucket_of(std::uint64_t hash, std::uint32_t slot) const noexcept {
    return buckets_[((hash >> 32) + slot) & mask_];
  }
  [[nodiscard]] segment::stack* find(std::uint64_t hash, stack_owner owner) const noexcept;
  [[nodiscard]] segment::stack* take(std::uint32_t depth, bool is_cut, stack_owner owner) noexcept;
  [[nodiscard]] segment::stack* find_or_copy(const segment::stack& of, std::uint32_t slot) noexcept;
  void complete(segment::stack& s, std::uint64_t hash) noexcept;
  void insert(segment::stack& s) noexcept;

  growing_part part_;
  link* buckets_ = nullptr;
  std::uint64_t mask_ = 0;
};

}  // namespace heapwright::probe
