// Freed blocks that a thread holds back before they can be handed out again, where
// recipe.hardening.quarantine_bytes says so: of each class some, in no order. A block that comes
// takes the place of one chosen at random, which leaves.
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
#include <heapwright/heap/span.hpp>

namespace heapwright {

/// Of one thread.
template <const recipe& R>
class used_quarantine {
  using classes = class_table<R>;

 public:
  /// Blocks of class c that are held back at most.
  [[nodiscard]] static constexpr std::size_t places(unsigned c) noexcept {
    return std::clamp<std::size_t>(R.hardening.quarantine_bytes / classes::of(c).size, 1, most);
  }

  /// Takes the block and returns one that may be used again, or null.
  [[nodiscard]] block* exchange(unsigned c, block* b) noexcept {
    return std::exchange(held_[c][random_below(places(c))], b);
  }

  /// Calls f(class, block) for all. From another thread: as of different moments.
  template <class F>
  [[gnu::no_sanitize_thread]] void for_each(F f) const noexcept {
    for (unsigned c = 1; c < classes::count; ++c) {
      for (const block* const& place : held_[c])
        if (const block* const b = __atomic_load_n(&place, __ATOMIC_RELAXED)) f(c, b);
    }
  }

  /// Calls f(class, block) for all, which leave.
  template <class F>
  void empty(F f) noexcept {
    for (unsigned c = 1; c < classes::count; ++c) {
      for (block*& b : held_[c])
        if (b != nullptr) f(c, std::exchange(b, nullptr));
    }
  }

 private:
  static constexpr std::size_t most = 16;

  /// Marsaglia's xorshift; each thread's begins with where its cache is.
  [[nodiscard]] std::size_t random_below(std::size_t n) noexcept {
    if (random_ == 0) random_ = static_cast<std::uint32_t>(address_of(this) >> 4) | 1;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return static_cast<std::size_t>((std::uint64_t{random_} * n) >> 32);
  }

  std::array<std::array<block*, most>, classes::count> held_{};
  std::uint32_t random_ = 0;
};

/// Where nothing is held back.
struct no_quarantine {
  [[nodiscard]] block* exchange(unsigned, block* b) const noexcept { return b; }
  template <class F>
  void for_each(F) const noexcept {}
  template <class F>
  void empty(F) const noexcept {}
};

template <const recipe& R>
using block_quarantine = std::conditional_t<R.hardening.quarantine_bytes != 0, used_quarantine<R>, no_quarantine>;

}  // namespace heapwright
