// How much free memory the page heap gives back to the system, and when. A pure policy: it is told
// byte counts and the time, and answers byte counts. It calls nothing and takes no lock.
//
// Problem. Memory that goes back too early costs page faults; memory that goes back too late makes
// a program look fat. Three rules decide, each with its own question:
//
//   window   In each window of time the least free resident memory is noted (the low water). Nobody
//            needed that much for the whole window, so it goes back when the window ends. A program
//            that keeps using its memory keeps it. After two
//            windows in which a program makes calls and needs none of it, all of it is back.
//   peak     What is in use at the peak must be resident then, so that much costs nothing at other
//            times. Free memory goes back when memory in use and free resident memory together
//            exceed the peak by more than the headroom.
//   excess   Free memory beyond both max_free_resident and the memory in use goes back at once, so
//            that a program that frees all and then sleeps does not keep it.
//
// Peak and excess guess ahead of the window's end. `early_` counts the bytes that they gave back.
// When such bytes are needed again, `refaulted_` grows by them: so much more may stay, until that
// fades (by 1/8 in each window). So a program whose blocks do not fit the gaps does not fault for
// ever. The peak rule adds at most 3/4 of the peak.
//
// Invariant: refaulted_ never grows by more than was given back early in the same window.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <heapwright/heap/recipe.hpp>

namespace heapwright {

/// All zero is the initial state. The page heap's lock guards it; is_due, window_ms and set_window
/// need no lock.
template <const recipe& R>
class purge_policy {
  static constexpr auto relaxed = std::memory_order_relaxed;

 public:
  /// Less than this is not given back before a window ends: a system call costs more than the
  /// memory.
  static constexpr std::uint64_t worth_a_call = 256 * KiB;

  /// Bytes, at the moment of a question.
  struct levels {
    std::uint64_t in_use;
    std::uint64_t free_resident;
  };

  // --- the window

  /// Milliseconds that free memory is kept. Instead of the recipe's; the current window ends now.
  void set_window(std::uint64_t ms) noexcept {
    window_ms_plus_one_.store(ms + 1, relaxed);
    window_end_.store(0, relaxed);
  }

  [[nodiscard]] std::uint64_t window_ms() const noexcept {
    const std::uint64_t set = window_ms_plus_one_.load(relaxed);
    return set == 0 ? R.pages.purge_window_ms : set - 1;
  }

  [[nodiscard]] bool is_due(std::uint64_t now_ms) const noexcept { return now_ms >= window_end_.load(relaxed); }

  /// Bytes that were free for the whole window.
  [[nodiscard]] std::uint64_t unused_in_window() const noexcept { return low_water_; }

  /// Begins a window, after the bytes that were unused in the last one have gone back.
  void begin_window(std::uint64_t now_ms, std::uint64_t free_resident) noexcept {
    refaulted_ -= refaulted_ / 8;
    early_ = 0;
    low_water_ = free_resident;
    window_end_.store(now_ms + window_ms(), relaxed);
  }

  /// After free memory has been taken.
  void note_free(std::uint64_t free_resident) noexcept { low_water_ = std::min(low_water_, free_resident); }

  // --- how much is to go back now; 0: nothing

  /// After memory has come into use.
  [[nodiscard]] std::uint64_t beyond_peak(levels now) const noexcept {
    const std::uint64_t peak = std::max(peak_, now.in_use);
    const std::uint64_t headroom = peak / R.pages.headroom_divisor + refaulted_;
    const std::uint64_t allowed = peak + std::min(headroom, peak / 4 * 3);
    const std::uint64_t resident = now.in_use + now.free_resident;
    return resident > allowed + worth_a_call ? resident - allowed : 0;
  }

  /// The most memory ever in use is at least `in_use`.
  void note_in_use(std::uint64_t in_use) noexcept { peak_ = std::max(peak_, in_use); }

  /// After memory has become free.
  [[nodiscard]] std::uint64_t beyond_need(levels now) const noexcept {
    if constexpr (R.pages.give_back == give_back_policy::at_once) return beyond(R.pages.max_free_resident, now);
    return beyond(std::max<std::uint64_t>(R.pages.max_free_resident, now.in_use) + refaulted_, now);
  }

  /// When all threads but one have ended: their work is done.
  [[nodiscard]] std::uint64_t beyond_need_of_one_thread(levels now) const noexcept {
    if constexpr (R.pages.give_back == give_back_policy::at_once) return 0;
    return beyond(std::max(now.in_use, worth_a_call) + refaulted_, now);
  }

  // --- what became of it

  void note_purged_early(std::uint64_t bytes) noexcept { early_ += bytes; }

  /// A request was served with `bytes` that were not resident.
  void note_refaulted(std::uint64_t bytes) noexcept {
    const std::uint64_t too_early = std::min(bytes, early_);
    early_ -= too_early;
    refaulted_ += too_early;
  }

  /// All free memory has gone back.
  void note_purged_all() noexcept { low_water_ = 0; }

 private:
  static std::uint64_t beyond(std::uint64_t keep, levels now) noexcept {
    return now.free_resident > keep + worth_a_call ? now.free_resident - keep : 0;
  }

  std::uint64_t low_water_ = 0;  ///< least free resident bytes since the window began
  std::uint64_t peak_ = 0;       ///< most bytes ever in use
  std::uint64_t early_ = 0;      ///< bytes given back in this window before its end, and not needed since
  std::uint64_t refaulted_ = 0;  ///< bytes given back early that were needed again; fades
  std::atomic<std::uint64_t> window_end_{0};
  std::atomic<std::uint64_t> window_ms_plus_one_{0};  ///< 0: the recipe's, so that the initial state is all zero
};

}  // namespace heapwright
