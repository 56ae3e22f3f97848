// Free blocks of small sizes, each size in a slot of its own: taking and putting back a block of a
// known size is a pop and a push.
//
// Slot i holds the blocks of (i + 1) * Step bytes, newest first. A bit per slot, and a bit per 64
// slots, find the next size that has a block in a few instructions. Two-level bitmaps: Masmano and
// others, TLSF, 2004. Invariant: a slot's bit is set exactly if it has a block; prev of the first
// block in a slot means nothing and is never read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <heapwright/allocator/tagged_block.hpp>
#include <heapwright/core/bits.hpp>

namespace heapwright {

/// Blocks of up to `Largest` bytes in steps of `Step`; sizes are multiples of it. Every operation
/// is O(1).
template <std::size_t Step, std::size_t Largest>
class size_slots {
  static constexpr std::size_t count = Largest / Step;
  static constexpr std::size_t groups = divide_up(count, 64);
  static_assert(count >= 1 && groups <= 64);

 public:
  void push(tagged_block* b, std::size_t size) noexcept {
    const std::size_t i = index(size);
    tagged_block* const first = slots_[i];
    b->next = first;
    slots_[i] = b;
    if (first != nullptr) {
      first->prev = b;
    } else {
      mark(i);
    }
  }

  /// A block of exactly `size` bytes, or null.
  [[nodiscard]] tagged_block* pop(std::size_t size) noexcept {
    tagged_block* const b = slots_[index(size)];
    if (b != nullptr) drop_first(index(size), b);
    return b;
  }

  /// The block that pop would return.
  [[nodiscard]] tagged_block* first(std::size_t size) const noexcept { return slots_[index(size)]; }

  /// A block of the smallest size >= `size` that there is, or null; it stays.
  [[nodiscard]] tagged_block* smallest_from(std::size_t size) const noexcept {
    const std::size_t i = index(size);
    std::size_t group = i / 64;
    std::uint64_t bits = occupied_[group] & (~std::uint64_t{0} << (i % 64));
    if (bits == 0) {
      // Shifted twice, because a shift by 64 has no meaning.
      const std::uint64_t later = occupied_groups_ & (~std::uint64_t{0} << group << 1);
      if (later == 0) return nullptr;
      group = static_cast<std::size_t>(std::countr_zero(later));
      bits = occupied_[group];
    }
    return slots_[group * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
  }

  void remove(tagged_block* b, std::size_t size) noexcept {
    const std::size_t i = index(size);
    if (slots_[i] == b) {
      drop_first(i, b);
      return;
    }
    tagged_block* const next = b->next;
    tagged_block* const prev = b->prev;
    prev->next = next;
    if (next != nullptr) next->prev = prev;
  }

  void clear() noexcept {
    std::fill_n(slots_, count, nullptr);
    std::fill_n(occupied_, groups, 0);
    occupied_groups_ = 0;
  }

 private:
  template <class Heap>
  friend struct best_fit_audit;

  [[nodiscard]] static constexpr std::size_t index(std::size_t size) noexcept { return size / Step - 1; }

  void drop_first(std::size_t i, const tagged_block* b) noexcept {
    tagged_block* const next = b->next;
    slots_[i] = next;
    if (next == nullptr) unmark(i);
  }

  void mark(std::size_t i) noexcept {
    occupied_[i / 64] |= std::uint64_t{1} << (i % 64);
    occupied_groups_ |= std::uint64_t{1} << (i / 64);
  }

  void unmark(std::size_t i) noexcept {
    occupied_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    if (occupied_[i / 64] == 0) occupied_groups_ &= ~(std::uint64_t{1} << (i / 64));
  }

  std::uint64_t occupied_groups_ = 0;
  std::uint64_t occupied_[groups] = {};
  tagged_block* slots_[count] = {};
};

}  // namespace heapwright
