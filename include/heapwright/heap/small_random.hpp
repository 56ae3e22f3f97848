// Random numbers for the places and the order in which blocks are handed out, where
// recipe.hardening says so: Marsaglia's xorshift ("Xorshift RNGs", 2003), which begins with a
// number of the system's.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/platform/concept.hpp>

namespace heapwright {

/// All zero is one that has not begun. For one thread at a time.
template <platform OS>
class small_random {
 public:
  /// A number below n; n is from 1 to 2^32. Begins, where that was not done.
  [[nodiscard]] std::size_t below(std::size_t n) noexcept {
    begin();
    return next_below(n);
  }

  /// As below, of what has begun. It calls nothing.
  [[nodiscard]] std::size_t next_below(std::size_t n) noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return static_cast<std::size_t>((std::uint64_t{state_} * n) >> 32);
  }

  [[nodiscard]] bool has_begun() const noexcept { return state_ != 0; }

  void begin() noexcept {
    if (!has_begun()) [[unlikely]]
      state_ = static_cast<std::uint32_t>(OS::random_number()) | 1;
  }

  /// In the child of a fork: its numbers are not its parent's.
  void restart() noexcept { state_ = 0; }

 private:
  std::uint32_t state_ = 0;  ///< 0: not begun
};

}  // namespace heapwright
