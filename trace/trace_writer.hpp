// Writes a trace, event by event. What comes is collected by thread; a round of chunks goes out
// when most_events have come together, or when the caller says so.
//
// The trace is whole after each round: a recorder that is killed loses what came since the last.
// With a limit, rounds become short as it comes near, and events behind it are left out: all of a
// round come before all that is left out. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "chunk.hpp"
#include "event_columns.hpp"
#include "trace.hpp"

namespace heapwright::trace {

class trace_writer {
 public:
  /// Takes all of these bytes. False: it cannot, and nothing more is written.
  using sink = std::function<bool(std::span<const std::byte>)>;

  /// `most_bytes`: of the trace, less the last round and the ending, which are some KiB; 0: any.
  explicit trace_writer(sink to, std::uint64_t most_bytes = 0);

  /// Its number is how many there were before it.
  void add(const process& p);
  /// Before the first event that has it.
  void add(const stack& s);
  void add(const module& m);
  void add(const interpreted_code& c);
  void add(const note& n);
  void add(const memory& m);
  void add(const touched& t);

  /// Times are nanoseconds since the recording began. The block that the program gets.
  block_id allocate(thread_number by, const request& asked, std::uint64_t at_ns);
  void deallocate(thread_number by, const block_id& block, std::uint64_t at_ns);
  block_id reallocate(thread_number by, const block_id& before, const request& asked, std::uint64_t at_ns);
  /// Its last event.
  void end_thread(thread_number which, std::uint64_t at_ns);

  /// Writes a round of what there is.
  void flush();

  /// Writes what there is, and why the trace ends here. Nothing follows.
  void end(const ending& how);

  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  /// It has all the bytes that it may: no more events.
  [[nodiscard]] bool is_full() const noexcept { return most_bytes_ != 0 && written_ >= most_bytes_; }
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }  ///< bytes
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

 private:
  event_writer& of(thread_number by) {
    const bool is_known = by.process < threads_.size() && by.thread < threads_[by.process].size();
    return is_known ? threads_[by.process][by.thread] : begin_thread(by);
  }
  event_writer& begin_thread(thread_number by);
  void note_event();
  void plan_round();
  void put(std::span<const std::byte> bytes);
  void put(const chunk_head& head, const byte_writer& payload);
  void put_definitions(chunk_kind kind, byte_writer& waiting);

  sink to_;
  chunk_packer packer_;
  std::vector<std::vector<event_writer>> threads_;           ///< by process and thread
  byte_writer stacks_, modules_, codes_, memory_, touched_;  ///< that are not written yet
  std::size_t waiting_ = 0;                                  ///< events
  std::size_t round_events_ = most_events;
  std::uint32_t round_ = 0;
  std::uint64_t most_bytes_, written_ = 0, events_ = 0;
  bool has_failed_ = false;
};

}  // namespace heapwright::trace
