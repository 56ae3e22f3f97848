// How the blocks of a free list lead to each other: a free block's first word is its link.
//
// Where blocks have seals, links are scrambled by the block's address and a key that only this
// process has: nobody can read an address from one, or make one.
//
//   link = address of the next block * multiplier ^ hash(address of this block ^ key)
//
// Addresses have 48 bits. A word that the program has written leads to an address with other bits
// as well, and so to nothing: each change of one byte does, and all but one in 65,536 of more
// bytes.
//
// Invariant: the key does not change once there is a link. The child of a fork has its parent's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/heap/span.hpp>

namespace heapwright {

/// The key of all scrambled links of a process. 0: there is none yet.
class link_key {
  friend class heap_describer;

 public:
  [[nodiscard]] static std::uint64_t get() noexcept { return value_.load(std::memory_order_relaxed); }

  /// Sets it, unless another thread was first.
  static void set(std::uint64_t key) noexcept {
    std::uint64_t none = 0;
    value_.compare_exchange_strong(none, key, std::memory_order_relaxed);
  }

 private:
  static inline constinit std::atomic<std::uint64_t> value_{0};
};

template <const recipe& R>
class block_links {
 public:
  /// The block that follows in the list; null at its end, and where the link is broken.
  [[nodiscard, gnu::always_inline]] static block* next(const block* b) noexcept { return decoded(b, b->link); }

  /// The same, of a list that another thread may change.
  [[nodiscard, gnu::no_sanitize_thread]] static block* next_relaxed(const block* b) noexcept {
    return decoded(b, __atomic_load_n(&b->link, __ATOMIC_RELAXED));
  }

  /// Whether the program has left the link alone. Always true where links are not scrambled.
  [[nodiscard, gnu::always_inline]] static bool is_whole(const block* b) noexcept {
    if constexpr (!is_scrambled) return true;
    return unscrambled(b, b->link) >> address_bits == 0;
  }

  [[gnu::always_inline]] static void set_next(block* b, const block* following) noexcept {
    if constexpr (is_scrambled)
      b->link = address_of(following) * multiplier ^ hash_of(b);
    else
      b->link = address_of(following);
  }

  /// Makes a free block at p.
  [[gnu::always_inline]] static block* make(void* p, const block* following) noexcept {
    auto* const b = new (p) block;
    set_next(b, following);
    return b;
  }

 private:
  static constexpr bool is_scrambled = R.hardening.sealed;
  static constexpr unsigned address_bits = 48;
  static constexpr std::uint64_t multiplier = fibonacci_hash(1);

  /// The odd number whose product with the multiplier is 1: by Newton's method, which doubles the
  /// right bits in each step.
  static constexpr std::uint64_t inverse = [] {
    std::uint64_t x = multiplier;
    for (int i = 0; i < 5; ++i) x *= 2 - multiplier * x;
    return x;
  }();
  static_assert(multiplier * inverse == 1);

  static constexpr bool tells_each_byte() noexcept {
    for (unsigned byte = 0; byte < 8; ++byte) {
      for (std::uint64_t change = 1; change < 256; ++change) {
        const std::uint64_t step = (change << 8 * byte) * inverse;
        if (step < std::uint64_t{1} << address_bits || -step < std::uint64_t{1} << address_bits) return false;
      }
    }
    return true;
  }
  static_assert(tells_each_byte());

  [[nodiscard]] static std::uint64_t hash_of(const block* b) noexcept {
    return fibonacci_hash(address_of(b) ^ link_key::get());
  }

  /// Where the link leads: an address, or more than one can be.
  [[nodiscard, gnu::always_inline]] static std::uint64_t unscrambled(const block* b, std::uintptr_t link) noexcept {
    return (link ^ hash_of(b)) * inverse;
  }

  [[nodiscard, gnu::always_inline]] static block* decoded(const block* b, std::uintptr_t link) noexcept {
    if constexpr (!is_scrambled) return reinterpret_cast<block*>(link);
    const std::uint64_t to = unscrambled(b, link);
    return to >> address_bits == 0 ? reinterpret_cast<block*>(to) : nullptr;
  }
};

}  // namespace heapwright
