// What the process's heap can say about itself, as numbers and as text.
#pragma once

#include <heapwright/malloc/process_report.hpp>

namespace heapwright::process {

/// Of all threads, as a census has it (heap/census.hpp): other threads wait in their slow steps
/// meanwhile. Allocates nothing. Where a lock of the heap is not free for 20 ms (a signal handler
/// has interrupted malloc), only the calling thread's cache is told from blocks in use.
[[nodiscard]] malloc_statistics collect_statistics() noexcept;

/// A page for people.
void write_statistics(int fd) noexcept;

/// From now on report_exit reports. `file`: where to append the report; null: a page for people
/// goes to stderr. Kept, not copied.
void report_at_exit(const char* file) noexcept;

/// The process is about to end. Reports, if that is wanted and has not happened. Does nothing in a
/// child of vfork, whose memory is its parent's.
void report_exit() noexcept;

}  // namespace heapwright::process
