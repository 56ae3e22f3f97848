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
// An allocation with an early stamp can be taken to be before a whole life of its address in
// another thread. That life's allocation then waits for a free which comes behind it in its own
// thread. When it goes on, the early block steps aside, and is live again when the other one is
// freed.
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

  /// It has not happened later than this, but for the skew of stamps.
  [[nodiscard]] std::uint64_t latest() const noexcept { return read_at == 0 ? ticks : read_at; }
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
    bool is_waiting = false;         ///< in `waiting` of its process, not in `ready_`
    std::optional<block_id> before;  ///< of the realloc that has begun
    std::uint64_t before_address = 0;
  };

  struct process_state {
    live_blocks live;
    std::unordered_multimap<std::uint64_t, block_id> aside;   ///< by the address at which they will be live again
    std::unordered_multimap<std::uint64_t, thread*> waiting;  ///< by the address that must change
    std::vector<std::unique_ptr<thread>> threads;
    std::map<std::uint64_t, live_blocks> forks;                          ///< that no child has taken yet
    std::optional<std::pair<std::uint32_t, std::uint64_t>> begins_with;  ///< the fork, until it is known
  };

  struct later {
    bool operator()(const thread* a, const thread* b) const noexcept {
      return a->records.front().ticks > b->records.front().ticks;
    }
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
  void note_early(const block_id& block) noexcept { early_[early_count_++ % early_.size()] = block; }
  [[nodiscard]] bool was_early(const block_id& block) const noexcept;
  bool force_one(std::uint64_t ticks);
  void give_fork(std::uint32_t parent, std::uint64_t fork, const live_blocks& live);

  trace_writer& to_;
  std::uint64_t skew_;
  tick_scale scale_;
  std::vector<process_state> processes_;
  std::priority_queue<thread*, std::vector<thread*>, later> ready_;  ///< with records, not waiting
  std::vector<block_id> early_ = std::vector<block_id>(1 << 15);  ///< the last ones whose allocation had an early stamp
  std::uint64_t early_count_ = 0;
  std::uint64_t unknown_ = 0, missed_frees_ = 0;
};

}  // namespace heapwright::trace
