// Which thread has which slot of the segment.
//
// States of a slot: unused -> alive -> gone -> alive ... A thread that ends leaves its figures in
// its slot, to be seen by name. Once there are more than a few of those, a new thread takes over
// the one that has been gone longest, whose figures move to slot 0; so a slot's memory is used
// again, and the sum over all slots never changes by it.
#pragma once

#include <array>

#include "segment_writer.hpp"

namespace heapwright::probe {

/// What some slots have counted together. Too large for a program's stack, which may be a small
/// one.
struct slot_sums {
  struct {
    std::uint64_t allocations = 0, allocated_bytes = 0, requested_bytes = 0, frees = 0, freed_bytes = 0;
  } classes[segment::size_scale::count];

  void add(const segment::thread_slot& s) noexcept;

  /// As if what is live had been allocated, and nothing freed.
  void leave_live() noexcept;
};

/// Of the calling thread, whose slot it is, as the kernel has it now.
void note_name(segment::thread_slot& s) noexcept;

/// Counters only: what they are for stays.
void clear(segment::thread_slot& s) noexcept;

class thread_slots {
 public:
  void reset(segment::segment_header& h) noexcept;

  /// For the calling thread; null when all are in use or there is no memory for another one.
  [[nodiscard]] segment::thread_slot* open(segment::segment_header& h) noexcept;

  [[nodiscard]] std::uint32_t number_of(const segment::thread_slot& s) const noexcept;

  /// The slot's thread has ended; all that it has counted is published.
  void close(segment::thread_slot& s) noexcept;

  /// Slot 0 is anyone's. `Counted`: slot_sums or a slot.
  template <class Counted>
  void add_to_everyone(const Counted& counted) noexcept;

  void get_sums(slot_sums& of_all) const noexcept;  ///< The caller holds the lock.
  [[nodiscard]] process_lock& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::uint32_t most = segment::most_thread_slots;
  static constexpr std::uint32_t kept_gone = 64;

  void fold(segment::thread_slot& s) noexcept;
  [[nodiscard]] segment::thread_slot* free_slot(segment::segment_header& h) noexcept;

  process_lock lock_;
  segment::segment_header* header_ = nullptr;
  std::uint32_t used_ = 1;
  std::array<std::uint16_t, most> gone_{};  ///< a ring, the one that has been gone longest first
  std::uint32_t gone_first_ = 0, gone_count_ = 0;
};

}  // namespace heapwright::probe
