// From what threads have recorded, each by itself, to events that name their blocks.
//
// Problem. A free says an address. Which allocation it means, and of which thread, follows from
// what all threads of the process did with this address, in order. Rings are read one after the
// other, so that what one thread did a moment ago may be known later than what another does now.
//
// The order is that of the stamps (ring.hpp), with two exceptions, as an address is live or it is
// not: an allocation at a live address waits for its free, and a free of an address that is not
// live waits for its allocation. Stamps of different threads may be wrong by `skew`. What still
// waits when all that happened before it is known is of a block from before the recording, or of
// one whose free was not seen.
//
// An allocation with an early stamp has happened at some time between the stamp and the next record
// of its thread, or the time at which it was read: it is *pending*. It is written at the end of
// that time, or when a free asks for a block at its address. Then it meets no other life of the
// address: those before it have been freed by then, and the next one begins after its own free. If
// several threads have one pending at an address, a free is of that whose time ends first.
//
// Invariant: of each thread, events are written in the order of its records.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "ring.hpp"
#include "stamp.hpp"
#include "trace_writer.hpp"

namespace heapwright::trace {

/// A record as it was read.
struct recorded {
  std::uint64_t ticks = 0;
  ring_kind kind = ring_kind::allocate;
  std::uint64_t address = 0;
  request asked;              ///< its stack by the trace's number; of `fork` and `touched` the size alone
  std::uint64_t read_at = 0;  ///< in ticks, of an allocation whose stamp is early; otherwise 0

  [[nodiscard]] bool is_early() const noexcept { return read_at != 0; }
};

[[nodiscard]] inline recorded read_record(std::uint64_t ticks, const ring_record& r, std::uint32_t stack) noexcept {
  constexpr unsigned kind_at = ring_record::address_bits, alignment_at = kind_at + ring_record::kind_bits;
  const unsigned logarithm = r.what >> alignment_at & ((1U << ring_record::alignment_bits) - 1);
  return {.ticks = ticks,
          .kind = static_cast<ring_kind>(r.what >> kind_at & ((1U << ring_record::kind_bits) - 1)),
          .address = r.what & ((std::uint64_t{1} << ring_record::address_bits) - 1),
          .asked = {.size = r.size,
                    .alignment = logarithm == 0 ? 0 : std::uint64_t{1} << logarithm,
                    .stack = stack,
                    .zeroed = (r.what >> ring_record::zeroed_at & 1) != 0},
          .read_at = r.is_stamped_early() ? ticks_now() : 0};
}

/// From ticks to nanoseconds since the recording began.
struct tick_scale {
  std::uint64_t begin = 0;  ///< ticks, when it did
  double ns_per_tick = 1;

  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const noexcept {
    return ticks < begin ? 0 : static_cast<std::uint64_t>(static_cast<double>(ticks - begin) * ns_per_tick);
  }
};

/// Blocks lie at multiples of 16.
struct address_hash {
  [[nodiscard]] std::size_t operator()(std::uint64_t address) const noexcept {
    return address * 0x9E3779B97F4A7C15 >> 16;
  }
};

class merger {
 public:
  /// `skew` in ticks.
  merger(trace_writer& to, std::uint64_t skew, const tick_scale& scale) : to_(to), skew_(skew), scale_(scale) {}

  /// A process without blocks, or, as a child of a fork, with those that its parent had then. Its
  /// number is how many there were.
  void begin_process();
  void begin_child(std::uint32_t parent, std::uint64_t fork);

  /// The next record of this thread.
  void add(thread_number by, const recorded& r);

  /// Writes all events from before `ticks`: all records of them have been added.
  void settle(std::uint64_t ticks);

  /// Writes all that there is: nothing follows.
  void finish();

  /// Frees of blocks that were not known, and blocks whose address was allocated again without a
  /// free.
  [[nodiscard]] std::uint64_t unknown() const noexcept { return unknown_; }
  [[nodiscard]] std::uint64_t missed_frees() const noexcept { return missed_frees_; }

 private:
  using live_blocks = tsl::robin_map<std::uint64_t, block_id, address_hash>;

  struct thread {
    thread_number number;
    std::deque<recorded> records;
    std::uint64_t due = 0;           ///< when its oldest record is written; 0: not in `ready_`
    bool is_waiting = false;         ///< in `waiting` of its process
    bool is_pending = false;         ///< in `pending` of its process
    std::optional<block_id> before;  ///< of the realloc that has begun
    std::uint64_t before_address = 0;

    /// The latest time at which the oldest record can have happened, but for the skew of stamps.
    [[nodiscard]] std::uint64_t latest() const noexcept;
  };
  using threads_by_address = std::unordered_multimap<std::uint64_t, thread*>;

  struct process_state {
    live_blocks live;
    threads_by_address waiting;  ///< by the address that must change
    threads_by_address pending;  ///< whose oldest record has an early stamp, by its address
    std::vector<std::unique_ptr<thread>> threads;
    std::map<std::uint64_t, live_blocks> forks;                          ///< that no child has taken yet
    std::optional<std::pair<std::uint32_t, std::uint64_t>> begins_with;  ///< the fork, until it is known
  };

  /// A thread whose `due` is another one by now is in the queue once more.
  struct ready_thread {
    std::uint64_t due;
    thread* who;
    bool operator<(const ready_thread& o) const noexcept { return due > o.due; }
  };

  thread& of(thread_number by) {
    auto& threads = processes_[by.process].threads;
    return by.thread < threads.size() ? *threads[by.thread] : begin_thread(by);
  }
  thread& begin_thread(thread_number by);
  void make_ready(thread& t);
  void write_ready(std::uint64_t ticks);
  bool write_front(process_state& p, thread& t, bool is_forced);
  bool give(process_state& p, thread& t, const recorded& r, bool is_forced);
  bool take(process_state& p, thread& t, const recorded& r, bool is_forced);
  static bool wait(process_state& p, thread& t, std::uint64_t address);
  void wake(process_state& p, std::uint64_t address);
  std::uint64_t time_of(const recorded& r) noexcept;
  static void forget_oldest(process_state& p, thread& t);
  bool write_pending(process_state& p, std::uint64_t address, std::uint64_t by);
  void write_all_pending(process_state& p, std::uint64_t by);
  bool force_one(std::uint64_t ticks);
  void give_fork(std::uint32_t parent, std::uint64_t fork, const live_blocks& live);

  trace_writer& to_;
  std::uint64_t skew_;
  tick_scale scale_;
  std::vector<process_state> processes_;
  std::priority_queue<ready_thread> ready_;  ///< with records, not waiting
  std::uint64_t last_ns_ = 0;                ///< of the last event that was written: times never go back
  std::uint64_t unknown_ = 0, missed_frees_ = 0;
};

}  // namespace heapwright::trace
