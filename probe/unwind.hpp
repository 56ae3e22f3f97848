// The calls that led here. Each step is a look into a table of rules that have been worked out before (call_frame_info.hpp): a few nanoseconds a frame.
//
// Never reads beyond the stack: a frame lies above the one before it and below the stack's end, or the walk ends. Thread-safe; allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "call_frame_info.hpp"

namespace heapwright::probe {

struct call_stack {
  static constexpr unsigned most = 128;

  std::uintptr_t addresses[most];  ///< return addresses, the innermost first; none of the probe's own
  unsigned depth = 0;
  bool is_cut = false;
};

/// Of the calling thread. `stack_end`: where its stack ends, 0: not known. `new_object` is called for files whose code is met for the first time.
void walk(call_stack& calls, std::uintptr_t stack_end, void (*new_object)(const code_object&) noexcept) noexcept;

/// After code has been unmapped: what is known of it may be of other code soon.
void forget_rules() noexcept;

}  // namespace heapwright::probe
