// Counts the system calls for memory of this process: mmap, munmap, mremap, madvise, mprotect, brk.
//
// Problem. A malloc may have its system calls in its own code, so no library in front of it sees
// them, and a tracer would stop the process at each call of any kind.
//
// A seccomp filter makes the kernel send SIGSYS in place of these calls alone. The handler counts,
// and makes the call by one instruction that the filter lets pass. Costs some microseconds a call.
#pragma once

#include <cstdint>

namespace heapwright::replay {

/// From now on, in this thread and those that it begins. False: the kernel does not allow it.
[[nodiscard]] bool count_memory_calls() noexcept;

/// Of all threads, so far.
[[nodiscard]] std::uint64_t memory_calls() noexcept;

}  // namespace heapwright::replay
