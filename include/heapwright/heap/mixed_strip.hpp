// A strip: some KiB of a mixed span (mixed_spans.hpp), from which one thread cuts blocks in the
// order in which it asks for them, whatever their sizes, without a lock.
//
// The words of bits of a strip belong to its thread. So nobody else may write to them: a block of
// these words that comes back waits until they are nobody's again, which is when the strip has
// moved on (mixed_spans::put). What is left of a strip looks like a block that is outside, so that
// its neighbours do not merge with it.
//
// Invariants  [begin, end) is one chunk, or empty; blocks from `counted` to `begin` are not yet in
//             the figures of their classes; the words of [owned, end) are this thread's.
#pragma once

#include <atomic>
#include <cstddef>

#include <heapwright/heap/mixed_bits.hpp>
#include <heapwright/heap/recipe.hpp>
#include <heapwright/platform/concept.hpp>

namespace heapwright {

/// All zero is empty. Its thread alone may call what is not const.
class mixed_strip {
  friend struct heap_describer;

 public:
  static constexpr std::size_t step_bytes = 4 * KiB;  ///< a strip grows by it

  /// A block of `bytes`, a multiple of the grain; null where so much is not left.
  [[nodiscard]] void* cut(std::size_t bytes) noexcept {
    std::byte* const p = begin_;
    if (bytes > left()) return nullptr;
    std::byte* const rest = p + bytes;
    if (rest != end_) bits_->begin_outside(mixed_bits::grain_of(rest));
    // A child forked meanwhile by another thread finds the bits behind `begin` in disorder, and
    // clears them (repair).
    std::atomic_signal_fence(std::memory_order_release);
    begin_ = rest;
    return p;
  }

  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - begin_); }

  /// Where what is left begins, or null; and how many bytes are not in the figures. From another
  /// thread: as of different moments.
  [[nodiscard, gnu::no_sanitize_thread]] const std::byte* rest() const noexcept {
    const std::byte* const begin = __atomic_load_n(&begin_, __ATOMIC_RELAXED);
    return begin != __atomic_load_n(&end_, __ATOMIC_RELAXED) ? begin : nullptr;
  }
  [[nodiscard, gnu::no_sanitize_thread]] std::size_t uncounted() const noexcept {
    const std::byte* const to = __atomic_load_n(&begin_, __ATOMIC_RELAXED);
    const std::byte* const from = __atomic_load_n(&counted_, __ATOMIC_RELAXED);
    return to > from ? static_cast<std::size_t>(to - from) : 0;
  }

  /// In the child of a fork, if its thread is no more.
  void repair() noexcept {
    for (const std::byte* p = begin_; p != end_; p += mixed_bits::grain) {
      const std::size_t g = mixed_bits::grain_of(p);
      if (p != begin_) bits_->clear_begins(g), bits_->clear_outside(g);
    }
  }

 private:
  template <const recipe& R, platform OS>
  friend class mixed_spans;

  std::byte* begin_ = nullptr;  ///< the next block
  std::byte* end_ = nullptr;
  std::byte* counted_ = nullptr;
  std::byte* owned_ = nullptr;
  mixed_bits* bits_ = nullptr;
};

}  // namespace heapwright
