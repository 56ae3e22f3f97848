// CLOCK_MONOTONIC for every allocation that is sampled: from the processor's counter of ticks,
// where the kernel too takes its time from there, and twice as fast. Otherwise it is clock_gettime.
//
// Each thread goes by a moment at which it has read both, and reads both again every few
// milliseconds; how long a tick is comes from the two last such moments. So it follows the kernel's
// clock to some microseconds, whatever either of them does, but two threads, or two readings around
// such a moment, may be that far apart: what is later may have the smaller time.
#pragma once

#include <cstdint>

#include "../trace/stamp.hpp"
#include "clocks.hpp"

namespace heapwright::probe {

using trace::ticks_now;

/// Of one thread. All zero is ready.
class tick_clock {
 public:
  [[nodiscard]] std::uint64_t now() noexcept {
    const std::uint64_t passed = ticks_now() - ticks_;
    if (passed >= most_ticks_) [[unlikely]]
      return read_both();
    return ns_ + (passed * ns_per_tick_ >> 32);
  }

  /// Once, when the process begins: until then it is clock_gettime.
  static void find_out() noexcept;

 private:
  [[gnu::noinline]] std::uint64_t read_both() noexcept;

  std::uint64_t ticks_ = 0, ns_ = 0;
  std::uint64_t most_ticks_ = 0;   ///< after which both are read again; 0: how long a tick is is not known
  std::uint64_t ns_per_tick_ = 0;  ///< 32 bits behind the point
};

}  // namespace heapwright::probe
