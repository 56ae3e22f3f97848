// Every call of malloc and free into the thread's ring (../trace/ring.hpp), for `heapwright
// record`.
//
//   put            takes the next place of this_ring, writes the record, stamps it
//   begin_ring     the thread has no ring yet
//   find_room      the ring was full when it was looked at last: waits for the recorder if it is
//
// States of a process: closed, open (its file of rings is mapped, and stays so). A fork makes the
// child closed again. Records while the segment says so, and the probe does not count; where there
// is no recorder the segment says so no longer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../segment/segment.hpp"
#include "../trace/ring.hpp"
#include "observer.hpp"
#include "tick_clock.hpp"

namespace heapwright::probe {

[[nodiscard]] inline bool is_recording() noexcept { return the_segment->recording.load(relaxed) != 0; }

/// With all the processes that its recorder has started.
[[nodiscard]] inline bool is_recorded_from_start() noexcept {
  return the_segment->recording.load(relaxed) == segment::recorded_from_start;
}

/// Where the calling thread records. All zero: it has no ring.
struct ring_cursor {
  trace::ring_record* begin;
  std::uint64_t taken;     ///< places, since the ring began
  std::uint64_t limit;     ///< places below it have been read, and may be written
  std::uint64_t freed_at;  ///< ticks, where the last record is of a free; otherwise 0
  std::uint64_t looks;     ///< of the reader, by then
};

extern thread_local constinit ring_cursor this_ring [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];

/// Notes that p has been allocated; returns p. Null is not noted.
[[gnu::noinline]] void* record_allocation(void* p, std::size_t size, std::size_t alignment, bool zeroed) noexcept;

/// Notes that p, not null, will be freed.
[[gnu::noinline]] void record_free(void* p) noexcept;

/// Where not each call is counted: notes that p has been allocated; returns p. Null is not noted.
[[gnu::always_inline]] inline void* noted_otherwise(counted now, void* p, std::size_t size, std::size_t alignment,
                                                    bool zeroed) noexcept {
  if (now == counted::samples) return estimated(p, size);
  return is_recording() ? record_allocation(p, size, alignment, zeroed) : p;
}

/// Before the free of p.
[[gnu::always_inline]] inline void note_free(void* p) noexcept {
  if (p == nullptr) [[unlikely]]
    return;
  const counted now = counted_now();
  if (now == counted::each_call) {
    freeing(p);
  } else if (now == counted::samples) {
    if (the_sampler.may_have(p)) [[unlikely]]
      freeing_sample(p, size_not_known);
  } else if (is_recording()) {
    record_free(p);
  }
}

/// realloc, noted.
[[gnu::noinline]] void* record_reallocation(void* p, std::size_t size) noexcept;

/// The program has mapped this range, as anonymous memory or something else, or unmaps it.
void record_mapping(const void* p, std::size_t bytes, bool is_anonymous) noexcept;
/// mremap. Only what was noted before is noted where it is now.
void move_recorded_mapping(const void* from, std::size_t bytes, const void* to, std::size_t wanted) noexcept;

/// The calling thread ends.
void record_thread_end() noexcept;

/// The process exits: of the large blocks that live, how much was touched.
void record_exit() noexcept;

/// Before fork: the number that the child is known by; 0: it will not record.
[[nodiscard]] std::uint64_t record_fork() noexcept;
void close_rings_in_child() noexcept;

}  // namespace heapwright::probe
