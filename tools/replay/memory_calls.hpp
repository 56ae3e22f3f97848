// Counts the system calls for memory of this process: mmap, munmap, mremap, madvise, mprotect, brk.
//
// Problem. A malloc may have its system calls in its own code, so no library in front of it sees
// them; a tracer would stop the process at each call of any kind; and a thread that begins or ends
// blocks all signals, so none can tell of them.
//
// A seccomp filter makes the kernel ask a thread of this process about these calls alone. The
// thread counts, and lets each pass. Costs some microseconds a call.
#pragma once

#include <cstdint>

namespace heapwright::replay {

/// From now on, in this thread and those that it begins. False: the kernel (5.5 or later) does not
/// allow it.
[[nodiscard]] bool count_memory_calls() noexcept;

/// Of all threads, so far.
[[nodiscard]] std::uint64_t memory_calls() noexcept;

}  // namespace heapwright::replay
