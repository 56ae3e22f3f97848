// Freed blocks that a thread holds back before they can be handed out again, where
// recipe.hardening.quarantine_bytes says so: some of each class that is cut from spans, and a few
// of the longer ones together; in no order. A block that comes takes the place of one chosen at
// random, which leaves.
//
// Invariant: the blocks here are free by their seals, and count as outside.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heapwright/heap/class_table.hpp>
#include <heapwright/heap/small_random.hpp>
#include <heapwright/heap/span.hpp>

namespace heapwright {

/// Of one thread.
template <const recipe& R, platform OS>
class used_quarantine {
  friend struct heap_describer;

  using classes = class_table<R>;

 public:
  /// Takes the block of class c and returns one that may be used again, of c unless c is a page-run
  /// class; or null. `random` has begun.
  [[nodiscard]] block* exchange(unsigned c, block* b, small_random<OS>& random) noexcept {
    if (classes::is_page_run(c)) [[unlikely]]
      return exchange_long(c, b, random);
    return std::exchange(held_[c][random.next_below(places_[c])], b);
  }

  /// Calls f(class, block) for all. From another thread: as of different moments.
  template <class F>
  [[gnu::no_sanitize_thread]] void for_each(F f) const noexcept {
    for (unsigned c = 1; c < classes::cut_end; ++c) {
      for (const block* const& place : held_[c])
        if (const block* const b = __atomic_load_n(&place, __ATOMIC_RELAXED)) f(c, b);
    }
    for (const held_long& place : long_)
      if (const block* const b = __atomic_load_n(&place.b, __ATOMIC_RELAXED)) f(place.size_class, b);
  }

  /// Calls f(class, block) for all, which leave.
  template <class F>
  void empty(F f) noexcept {
    for (unsigned c = 1; c < classes::cut_end; ++c) {
      for (block*& b : held_[c])
        if (b != nullptr) f(c, std::exchange(b, nullptr));
    }
    for (held_long& place : long_)
      if (place.b != nullptr) f(place.size_class, std::exchange(place.b, nullptr));
  }

 private:
  static constexpr std::size_t most = 16, most_long = 4;

  struct held_long {
    block* b;
    unsigned size_class;
  };

  /// Blocks of class c that are held back at most.
  static constexpr auto places_ = [] {
    std::array<std::uint8_t, classes::cut_end> all{};
    for (unsigned c = 1; c < classes::cut_end; ++c)
      all[c] = static_cast<std::uint8_t>(
          std::clamp<std::size_t>(R.hardening.quarantine_bytes / classes::of(c).size, 1, most));
    return all;
  }();

  [[nodiscard, gnu::noinline]] block* exchange_long(unsigned c, block* b, small_random<OS>& random) noexcept {
    held_long& place = long_[random.next_below(most_long)];
    place.size_class = c;
    return std::exchange(place.b, b);
  }

  std::array<std::array<block*, most>, classes::cut_end> held_{};
  std::array<held_long, most_long> long_{};
};

/// Where nothing is held back.
struct no_quarantine {
  template <class Random>
  [[nodiscard]] block* exchange(unsigned, block* b, Random&) const noexcept {
    return b;
  }
  template <class F>
  void for_each(F) const noexcept {}
  template <class F>
  void empty(F) const noexcept {}
};

template <const recipe& R, platform OS>
using block_quarantine = std::conditional_t<R.hardening.quarantine_bytes != 0, used_quarantine<R, OS>, no_quarantine>;

}  // namespace heapwright
