// When a thread looks at its clock and at its classes, and what it does with each class. A pure
// policy: it is told counts of blocks and the time.
//
// Problem. A thread's cache keeps blocks that the thread no longer asks for, and after a peak the
// blocks that it does ask for lie in many sparse spans. Scavenging takes both back: idle classes
// are flushed, and sparse classes keep no freed blocks until the next pass, so that most of their
// spans come free and new blocks come from few.
//
// A pass goes over all classes once per window of time, one class per look, so that a pause is as
// long as it takes to give back what one class keeps. Between passes the thread looks at the clock
// after every `blocks_per_look` blocks.
//
// States of a class   used       a slow step came by since the last pass
//                     was used   none since, but one in the pass before: the next pass flushes it
//                     unused     neither: only deferred frees and remote frees can be there
#pragma once

#include <cstdint>
#include <utility>

#include <heapwright/core/language.hpp>

namespace heapwright {

/// What a thread notes of the use of one class.
struct class_use {
  bool is_used = false;    ///< a slow step came by since the last pass
  bool was_used = false;   ///< none came by since, but in the pass before
  bool is_sparse = false;  ///< its spans were sparse at the last pass: no freed block is kept
};

/// What to do with a class.
enum class scavenge_step : std::uint8_t {
  keep,   ///< nothing
  drain,  ///< give back all its blocks; the limits stay
  flush   ///< the same, and forget how much the thread needed
};

/// Of one thread.
class scavenger {
 public:
  static constexpr std::uint32_t blocks_per_look = 512;
  static constexpr std::uint32_t blocks_per_step = 4;  ///< between two looks of a pass
  static constexpr std::uint32_t looks_per_fading = 16;

  explicit constexpr scavenger(unsigned class_count) noexcept : class_count_(class_count), next_class_(class_count) {}

  /// Counts blocks that came or went. True: it is time for a look.
  [[nodiscard]] bool count(std::uint32_t blocks) noexcept { return (blocks_ += blocks) >= blocks_per_look; }

  /// Counts blocks for the next look alone.
  void count_ahead(std::uint32_t blocks) noexcept { blocks_ += blocks; }

  [[nodiscard]] bool is_in_pass() const noexcept { return next_class_ < class_count_; }

  /// At a look between passes. True: what the thread remembers of past requests is to fade.
  [[nodiscard]] bool is_time_to_fade() noexcept { return ++looks_ % looks_per_fading == 0; }

  /// At a look between passes: begins a pass if a window has ended. True: it has begun.
  [[nodiscard]] bool begin_pass(std::uint64_t now_ms, std::uint64_t window_ms) noexcept {
    if (now_ms < next_pass_) return false;
    next_pass_ = now_ms + window_ms;
    next_class_ = 1;
    return true;
  }

  /// The class that the pass is at; class_count when it has ended.
  [[nodiscard]] unsigned current_class() const noexcept { return next_class_; }
  void go_on() noexcept { ++next_class_; }

  /// At the end of a look.
  void end_look() noexcept { blocks_ = is_in_pass() ? blocks_per_look - blocks_per_step : 0; }

  /// What a pass does with a class; `is_sparse()` is asked of a class in use.
  template <class IsSparse>
  [[nodiscard]] static scavenge_step step(class_use& use, IsSparse is_sparse) {
    if (!use.is_used) return scavenge_step::flush;
    use.was_used = std::exchange(use.is_used, false);
    use.is_sparse = is_sparse();
    return use.is_sparse ? scavenge_step::drain : scavenge_step::keep;
  }

 private:
  unsigned class_count_;
  unsigned next_class_;
  std::uint32_t blocks_ = 0;  ///< since the clock was last looked at
  std::uint32_t looks_ = 0;
  std::uint64_t next_pass_ = 0;  ///< milliseconds
};

}  // namespace heapwright
