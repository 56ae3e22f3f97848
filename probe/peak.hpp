// The live bytes of the process, and the most there were at one moment, without that threads write to one variable with each call.
//
// A thread publishes what its net bytes have changed by, in header.live, when they leave its band:
//   usually       within peak_grain of what it has published last, either way
//   precise       (interval 1, peak_grain 0) at most what it has published last: it may have freed more since, but not allocated
// header.live is the sum of what threads have published. So in the precise way it is never less than what is live: while it does not exceed the peak,
// nothing does, and threads that free and allocate at the same level publish nothing. Where it would exceed the peak, it is first settled: whoever finds
// it so takes out of it what the others have freed since. Then it is exact, and the peak is raised to it, or not. Settling looks at each thread that may
// be behind: only the first few slots may; other threads publish each call.
//
// The same for each size class, in the precise way only; otherwise a thread publishes these when it ends.
//
// Invariant, while no thread is within a call:  header.live = the sum of published_net() over all slots + what was counted apart
//                                               header.class_live likewise, with class_published
#pragma once

#include <cstdint>

#include "../trace/segment.hpp"

namespace heapwright::probe {

inline constexpr std::uint64_t usual_grain = 16 * 1024;

[[nodiscard]] inline bool is_out_of_band(const trace::thread_slot& s, std::uint64_t net) noexcept {
  return net - s.band_begin.load(std::memory_order_relaxed) > s.band_bytes.load(std::memory_order_relaxed);
}

class peak_keeper {
 public:
  void reset(trace::segment_header& h) noexcept;

  /// A thread has got this slot, which is in memory from now on.
  void admit(std::uint32_t slot) noexcept;

  [[nodiscard]] bool is_precise() const noexcept { return header_->peak_grain.load(std::memory_order_relaxed) == 0; }

  /// The thread's net bytes; `slot` is its number.
  void publish(trace::thread_slot& s, std::uint32_t slot) noexcept;

  /// In the precise way, after each allocation, and each free that was out of the band.
  void publish_class(trace::thread_slot& s, std::uint32_t slot, unsigned c) noexcept;

  /// Otherwise: all classes of a thread, now and then.
  void publish_classes(trace::thread_slot& s, std::uint32_t slot) noexcept;

  /// The last of a thread.
  void publish_all(trace::thread_slot& s) noexcept;

  // Of what no thread's slot has; may be negative.
  void count_apart(std::uint64_t by) noexcept;
  void count_class_apart(unsigned c, std::uint64_t by) noexcept;

  /// Begins again from what is live, if somebody has asked for it.
  void obey_reset() noexcept {
    if (resets_.load(std::memory_order_relaxed) != header_->reset.load(std::memory_order_relaxed)) [[unlikely]]
      begin_again();
  }

 private:
  [[gnu::noinline]] void begin_again() noexcept;
  void raise_peak(std::uint64_t live) noexcept;
  void raise_class_peak(unsigned c, std::uint64_t live) noexcept;
  void settle() noexcept;
  void settle_class(unsigned c) noexcept;

  trace::segment_header* header_ = nullptr;
  std::atomic<std::uint32_t> last_slot_{0};  ///< of those that may be behind
  std::atomic<std::uint32_t> resets_{0};
};

}  // namespace heapwright::probe
