// What a stopped thread has in its registers. The only file here that knows the processor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace heapwright::tool {

struct thread_state {
  std::uint64_t stack_pointer = 0;
  std::uint64_t thread_pointer = 0;         ///< what thread-local storage is addressed by; 0: not known
  std::uint64_t system_call = 0;            ///< number of the call in which the thread is; meaningless outside of one
  std::vector<std::uint64_t> kept = {};     ///< general registers that a function call keeps
  std::vector<std::uint64_t> scratch = {};  ///< the other general registers
};

/// Bytes below the stack pointer that code may use without moving it.
[[nodiscard]] std::uint64_t red_zone_bytes();

/// Of a thread in a ptrace stop of the calling thread's; nothing if it is gone.
[[nodiscard]] std::optional<thread_state> read_thread_state(pid_t thread);

}  // namespace heapwright::tool
