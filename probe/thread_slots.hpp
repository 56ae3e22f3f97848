// Which thread has which slot of the segment.
//
// States of a slot: unused -> alive -> gone -> alive ... A thread that ends leaves its figures in its slot, to be seen by name. Once there are more than a
// few of those, a new thread takes over the one that has been gone longest, whose figures move to slot 0; so a slot's memory is used again, and the
// sum over all slots never changes by it.
#pragma once

#include <array>

#include "segment_writer.hpp"

namespace heapwright::probe {

/// What some slots have counted together.
struct slot_sums {
  std::uint64_t requested_bytes = 0;
  struct {
    std::uint64_t allocations = 0, allocated_bytes = 0, frees = 0, freed_bytes = 0;
  } classes[trace::size_scale::count];

  void add(const trace::thread_slot& s) noexcept;
  [[nodiscard]] std::uint64_t net_bytes() const noexcept;
};

[[nodiscard]] slot_sums sums_of(const trace::thread_slot& s) noexcept;

/// Counters only: what they are for stays.
void clear(trace::thread_slot& s) noexcept;

class thread_slots {
 public:
  void reset(trace::segment_header& h) noexcept;

  /// For the calling thread; null when all are in use or there is no memory for another one.
  [[nodiscard]] trace::thread_slot* open(trace::segment_header& h) noexcept;

  [[nodiscard]] std::uint32_t number_of(const trace::thread_slot& s) const noexcept;

  /// The slot's thread has ended; all that it has counted is published.
  void close(trace::thread_slot& s) noexcept;

  /// Slot 0 is anyone's.
  void add_to_everyone(const slot_sums& sums) noexcept;

  [[nodiscard]] slot_sums sums() const noexcept;  ///< of all. The caller holds the lock.
  [[nodiscard]] process_lock& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::uint32_t most = 1024;
  static constexpr std::uint32_t kept_gone = 64;

  void fold(trace::thread_slot& s) noexcept;
  [[nodiscard]] trace::thread_slot* free_slot(trace::segment_header& h) noexcept;

  process_lock lock_;
  trace::segment_header* header_ = nullptr;
  std::uint32_t used_ = 1;
  std::array<std::uint16_t, most> gone_{};  ///< a ring, the one that has been gone longest first
  std::uint32_t gone_first_ = 0, gone_count_ = 0;
};

}  // namespace heapwright::probe
