// The return addresses of a thread, by the unwind tables of the program: what the compiler's own
// library finds. Allocates nothing.
#pragma once

#include <cstdint>

#include <unwind.h>

#include <heapwright/core/language.hpp>

namespace heapwright::detail {

/// Of the calling thread, the innermost first: at most n. Returns how many.
[[gnu::always_inline]] inline unsigned capture_frames(std::uintptr_t* to, unsigned n) noexcept {
  struct found {
    std::uintptr_t* to;
    unsigned n, count;
  } all{to, n, 0};
  ::_Unwind_Backtrace(
      [](_Unwind_Context* context, void* list) {
        auto& frames = *static_cast<found*>(list);
        if (const auto pc = ::_Unwind_GetIP(context); pc != 0 && frames.count < frames.n)
          frames.to[frames.count++] = pc;
        return frames.count < frames.n ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &all);
  return all.count;
}

}  // namespace heapwright::detail
