// From a trace to a plan (plan.hpp): what one process of it did, for replays.
//
//   choose     reads the trace once: the process with most events, or the one that was asked for,
//              and how much of large blocks was touched
//   build      reads it again, round by round: gives each block a slot, and finds an order of all
//              threads, by the recorded times and so that a block is allocated before it is freed
//
// A free of a block that the process does not have (from before the trace, or of its parent) is
// left out; a reallocation of one becomes an allocation. Memory: what lives at one time, and the
// operations of a round.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include "plan.hpp"
#include "trace.hpp"

namespace heapwright::tool {

/// A process of a trace, before it is replayed.
struct traced_process {
  trace::process described;
  std::uint64_t events = 0;
  std::uint64_t last_event_ns = 0;
  /// All events up to here are in the trace. Of a torn trace with several threads the last round
  /// may lack some of them.
  std::uint64_t known_to_ns = 0;
  std::vector<trace::memory> memory;  ///< as it was while recording; of a torn trace up to known_to_ns
  trace::ending ended;
  std::size_t others = 0;  ///< processes with events that the trace has beside it

  /// Says that there are others, and how to choose one; empty: there are none, or `is_chosen`.
  [[nodiscard]] std::string note_on_others(bool is_chosen) const;
  /// Says how many frees are left out of a replay.
  [[nodiscard]] std::string note_on_left_out(std::uint64_t frees) const;
  /// "piece" of a trace, or "recording".
  [[nodiscard]] const char* what_it_is() const noexcept { return ended.is_piece ? "piece" : "recording"; }
};

/// What is known of a call stack.
struct stack_site {
  std::uint16_t site = 0;  ///< the number of its call site; 0: not known
  bool by_new = false;     ///< through operator new
};

/// What the plan of it says of the whole.
struct plan_summary {
  std::uint64_t operations = 0, threads = 0, rounds = 0;
  std::uint64_t live_peak = 0;    ///< bytes that were asked for
  std::uint64_t duration_ns = 0;  ///< from the process's first event to its last
  std::uint64_t left_out = 0;     ///< frees of blocks that it does not have
};

class plan_builder {
 public:
  /// Told how much is done, of 1. May throw to end it.
  using progress = std::function<void(double)>;

  /// Throws `failure`: no trace, no such process, or none that has events. `process`: its number in
  /// the trace.
  plan_builder(std::string file, std::optional<std::uint32_t> process, const progress& told);

  [[nodiscard]] const traced_process& process() const noexcept { return process_; }

  /// Writes the plan to this descriptor, once. Throws `failure`.
  /// `touches_all`: blocks are touched in full, whatever the program has touched.
  /// `stacks`: by number; empty: sites are not noted.
  plan_summary build(int descriptor, const progress& told, bool touches_all, std::span<const stack_site> stacks = {});

 private:
  struct block_key {
    std::uint32_t thread;
    std::uint64_t number;

    friend bool operator==(const block_key&, const block_key&) = default;
  };
  struct key_hash {
    std::size_t operator()(const block_key& k) const noexcept {
      return (k.number * 0x9E3779B97F4A7C15 + k.thread) * 0x9E3779B97F4A7C15 >> 13;
    }
  };
  struct live_block {
    std::uint32_t slot = 0;
    std::uint16_t touched = 0;
    stack_site asked_at{};
    std::uint64_t size = 0;
  };
  /// Of the trace, by its number there.
  struct planned_thread {
    std::uint32_t number_plus_one = 0;  ///< in the plan; 0: it has not begun
    std::uint32_t last_stint_plus_one = 0;
    std::vector<std::uint32_t> empty_slots;  ///< that it has emptied, or may use
    std::size_t empty_since_before = 0;      ///< of these, the first, which were empty before this round
  };
  /// What a thread does in the round at hand.
  struct thread_round {
    std::uint32_t thread;
    std::vector<trace::event> events;
    std::size_t next = 0;
    std::vector<replay::operation> operations{};
    std::size_t in_turns = 0;  ///< operations that are in a turn by now
  };

  [[nodiscard]] static block_key key_of(const trace::block_id& b) noexcept { return {b.by.thread, b.number}; }
  planned_thread& of(std::uint32_t thread);
  void end_round();
  void find_handed_over();
  [[nodiscard]] bool must_wait(const trace::event& e) const;
  [[nodiscard]] std::size_t next_thread(std::size_t after) const;
  void run(thread_round& t);
  void add(thread_round& t, const trace::event& e);
  void end_turn(thread_round& t, std::uint64_t at_ns);
  void write_round();
  [[nodiscard]] std::uint32_t slot_for(std::uint32_t thread, const block_key& block);
  [[nodiscard]] static replay::operation operation_on(const live_block& block, replay::operation_kind kind);
  void put_block(thread_round& t, const trace::event& e, replay::operation_kind kind);
  bool take_block(thread_round& t, const trace::block_id& block, replay::operation_kind kind);
  void put(const void* bytes, std::size_t size);
  void flush();
  template <class T>
  void put_table(const std::vector<T>& all, std::uint64_t& at, std::uint64_t& count);

  std::string file_;
  traced_process process_;
  tsl::robin_map<block_key, std::uint64_t, key_hash> touched_;  ///< bytes of large blocks

  // While building.
  int to_ = -1;
  std::span<const stack_site> stacks_;
  std::vector<std::byte> waiting_;  ///< to be written
  std::uint64_t written_ = 0;
  plan_summary summary_;
  std::optional<std::uint64_t> first_ns_;  ///< the first event
  std::vector<planned_thread> threads_;
  std::vector<replay::thread> plan_threads_;
  std::vector<replay::turn> turns_;
  std::vector<replay::stint> stints_;
  std::vector<replay::round> rounds_;
  std::vector<thread_round> round_;
  tsl::robin_map<block_key, live_block, key_hash> live_;
  tsl::robin_set<block_key, key_hash> handed_over_;  ///< freed in this round by another thread than its own
  tsl::robin_set<block_key, key_hash> to_come_;      ///< of these, not allocated yet
  std::vector<std::uint32_t> rested_slots_;          ///< empty since an earlier round
  std::uint32_t slots_ = 0;
  std::size_t turns_placed_ = 0;  ///< whose operations have their place in the file
  std::uint64_t live_bytes_ = 0, measured_peak_ = 0, events_ = 0, events_measured_ = 0, measured_ns_ = 0;
  bool measures_here_ = false, ends_here_ = false;  ///< the turn at hand
};

}  // namespace heapwright::tool
