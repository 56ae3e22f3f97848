// Free blocks of small sizes, each size in a slot of its own: taking and putting back a block of a
// known size is a pop and a push.
//
// Slot i holds the blocks of (i + 1) * Step bytes, newest first. Invariant: occupied_ has exactly
// the slots that have a block; prev of the first block in a slot means nothing and is never read.
#pragma once

#include <algorithm>
#include <cstddef>

#include <heapwright/allocator/tagged_block.hpp>
#include <heapwright/core/bin_bitmap.hpp>

namespace heapwright {

/// Blocks of up to `Largest` bytes in steps of `Step`; sizes are multiples of it. Every operation
/// is O(1).
template <std::size_t Step, std::size_t Largest>
class size_slots {
  static constexpr std::size_t count = Largest / Step;

 public:
  void push(tagged_block* b, std::size_t size) noexcept {
    const std::size_t i = index(size);
    tagged_block* const first = slots_[i];
    b->next = first;
    slots_[i] = b;
    if (first != nullptr) {
      first->prev = b;
    } else {
      occupied_.insert(i);
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
    const std::size_t i = occupied_.first_from(index(size));
    return i == occupied_.none ? nullptr : slots_[i];
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
    occupied_ = {};
  }

 private:
  template <class Heap>
  friend struct best_fit_audit;

  [[nodiscard]] static constexpr std::size_t index(std::size_t size) noexcept { return size / Step - 1; }

  void drop_first(std::size_t i, const tagged_block* b) noexcept {
    tagged_block* const next = b->next;
    slots_[i] = next;
    if (next == nullptr) occupied_.erase(i);
  }

  bin_bitmap<count> occupied_;
  tagged_block* slots_[count] = {};
};

}  // namespace heapwright
