// Live bytes of the process and of each size class, and their peaks, without a variable that every
// call of every thread writes to.
//
// Usual mode: a thread publishes its net bytes in header.live when they are peak_grain away from
// what it has published.
//
// Precise mode (interval 1): the first few slots have an endless band. Such a thread publishes in
// behind_, and only what is above all that it has published there: it may have freed more since. So
// header.live + behind_ is never less than what is live. When it exceeds the peak, what these
// threads have freed is taken out, and the peak is raised to certainly_live(). Other threads
// publish with each call.
//
// The net bytes of a class are published in header.class_live: in the precise mode likewise,
// usually with each sample of the thread and when it ends. What is published may then be more than
// is live, by any amount: a thread may free everything and fall idle. So it only says when to look;
// the peak is raised to class_certainly_live().
//
// Both read what was allocated of all threads before they read what was freed. At a moment between
// the two, at least these allocations and at most these frees had happened: so what is left was
// live then, whatever the threads do meanwhile.
//
// Invariant, while no thread is within a call:
//   header.live = the sum of published_net() over all slots + what was counted apart
//   header.class_live = the sum of class_published over all slots + what was counted apart
#pragma once

#include <cstdint>
#include <optional>

#include "../segment/segment.hpp"

namespace heapwright::probe {

inline constexpr std::uint64_t usual_grain = 16 * 1024;

[[nodiscard]] inline bool is_out_of_band(const segment::thread_slot& s, std::uint64_t net) noexcept {
  return net - s.band_begin.load(std::memory_order_relaxed) > s.band_bytes.load(std::memory_order_relaxed);
}

class peak_keeper {
 public:
  void reset(segment::segment_header& h, std::uint64_t interval) noexcept;

  /// Bytes between samples: decides between the two modes. Returns the grain, 0 in the precise
  /// mode. Each thread follows when it publishes next.
  std::uint64_t follow(std::uint64_t interval) noexcept {
    const std::uint64_t wanted = interval == 1 ? 0 : usual_grain;
    if (grain() != wanted) [[unlikely]]
      set_grain(wanted);
    return wanted;
  }

  /// A thread has got this slot, which is in memory from now on.
  void admit(std::uint32_t slot) noexcept;

  [[nodiscard]] bool is_precise() const noexcept { return grain() == 0; }

  /// The thread's net bytes; `slot` is its number.
  void publish(segment::thread_slot& s, std::uint32_t slot) noexcept;

  /// In the precise way, after each allocation, and each free that was out of the band.
  void publish_class(segment::thread_slot& s, std::uint32_t slot, unsigned c) noexcept;

  /// Otherwise: all classes of a thread, where it has allocated about half a MiB since it did so
  /// last. It has taken a sample, which stands for `bytes`.
  void publish_classes_now_and_then(segment::thread_slot& s, std::uint32_t slot, std::uint64_t bytes) noexcept {
    const std::uint64_t since = s.sampled_since_published.load(std::memory_order_relaxed) + bytes;
    s.sampled_since_published.store(since, std::memory_order_relaxed);
    if (since >= 512 * 1024) publish_classes(s, slot);
  }

  /// The last of a thread.
  void publish_all(segment::thread_slot& s) noexcept;

  // Of what no thread's slot has; may be negative.
  void count_apart(std::uint64_t by) noexcept;
  void count_class_apart(unsigned c, std::uint64_t by) noexcept;

  /// Where samples alone are counted: of the estimates of what is live, before these change.
  void count_variance(unsigned size_class, double by) noexcept;

  /// Begins again from what is live, if somebody has asked for it.
  void obey_reset() noexcept {
    if (resets_.load(std::memory_order_relaxed) != header_->reset.load(std::memory_order_relaxed)) [[unlikely]]
      begin_again();
  }

 private:
  [[nodiscard]] std::uint64_t grain() const noexcept { return grain_.load(std::memory_order_relaxed); }
  [[gnu::noinline]] void set_grain(std::uint64_t grain) noexcept;
  [[gnu::noinline]] void begin_again() noexcept;
  void publish_classes(segment::thread_slot& s, std::uint32_t slot) noexcept;
  [[nodiscard]] std::uint64_t certain(std::uint64_t live) const noexcept;
  [[nodiscard]] std::uint64_t certain(std::uint64_t live, unsigned size_class) const noexcept;
  void move_published(segment::thread_slot& s, std::uint64_t bytes, std::uint64_t grain) noexcept;
  void raise_peak(std::uint64_t published) noexcept;
  void raise_class_peak(unsigned c, std::uint64_t published) noexcept;
  void settle(segment::thread_slot& s) noexcept;
  void settle_class(unsigned c, std::uint32_t slots) noexcept;
  [[nodiscard]] std::uint64_t published() const noexcept;
  [[nodiscard]] std::optional<std::uint64_t> certainly_live(std::uint64_t above) noexcept;
  [[nodiscard]] std::optional<std::uint64_t> class_certainly_live(unsigned c) const noexcept;

  segment::segment_header* header_ = nullptr;
  std::atomic<std::uint64_t> grain_{0};
  std::atomic<std::uint32_t> last_slot_{0};
  segment::counter behind_{};                 ///< published by threads whose band is endless
  std::atomic<bool> some_are_behind_{false};  ///< a thread's band has been endless
  // Changes of a thread between header.live and behind_.
  std::atomic<std::uint32_t> moves_begun_{0}, moves_ended_{0};
  std::atomic<std::uint32_t> resets_{0};
};

extern constinit peak_keeper the_peak [[gnu::visibility("hidden")]];

}  // namespace heapwright::probe
