// Which addresses may be in a table of some live blocks, so that nearly every free of another block
// ends with one look. In memory of the process's own.
//
// A slot for each of 32,768 groups of addresses:
//
//   slot   count   tag
//          0       0      no block
//          1       t      one block, whose address has the tag
//          n + 1   0      n blocks, of any tag: from the second one until there is none
//          63      0      62 blocks or more: it stays, as does a filter that was given up
//
// With m blocks a free of another one is looked for in the table once in 2 (32,768 / m)^2 times.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/hash.hpp>

namespace heapwright::probe {

/// Not to be destroyed; all zero, it is empty. Thread-safe.
class address_filter {
 public:
  /// The look of every free: one load and one branch. A branch of its own for an empty slot would
  /// be mispredicted in up to a quarter of the frees.
  [[nodiscard]] bool may_have(const void* p) const noexcept {
    const std::uint64_t hash = hash_of(p);
    // 0: the tag is that of `p`. Below 2 * one_block: no block, or one of another tag.
    const unsigned difference = slots_[index_of(hash)].load(relaxed) ^ (one_block | tag_of(hash));
    return difference - 1 >= 2 * one_block - 1;
  }

  void add(const void* p) noexcept {
    change(p, [tag = tag_of(hash_of(p))](unsigned slot) {
      if (slot == 0) return one_block | tag;
      return (slot & tag_mask) == 0 ? slot + one_block : 3 * one_block;
    });
  }

  void remove(const void* p) noexcept {
    change(p, [](unsigned slot) { return slot <= 2 * one_block ? 0 : slot - one_block; });
  }

  void clear() noexcept { fill(0); }
  void give_up() noexcept { fill(most_blocks); }
  [[nodiscard]] bool is_given_up() const noexcept { return is_full(slots_[0].load(relaxed)); }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr unsigned bits = 15, tag_bits = 10;
  static constexpr unsigned tag_mask = (1U << tag_bits) - 1, one_block = 1U << tag_bits;
  static constexpr unsigned most_blocks = 0x10000 - one_block;

  static bool is_full(unsigned slot) noexcept { return slot >= most_blocks; }

  static std::uint64_t hash_of(const void* p) noexcept { return fibonacci_hash(reinterpret_cast<std::uintptr_t>(p)); }
  /// Never 0.
  static unsigned tag_of(std::uint64_t hash) noexcept {
    return (static_cast<unsigned>(hash >> (64 - bits - tag_bits)) & tag_mask) | 1;
  }

  static std::size_t index_of(std::uint64_t hash) noexcept { return hash >> (64 - bits); }

  template <class NextSlot>
  void change(const void* p, NextSlot after) noexcept {
    std::atomic<std::uint16_t>& slot = slots_[index_of(hash_of(p))];
    std::uint16_t old = slot.load(relaxed);
    while (!is_full(old) && !slot.compare_exchange_weak(old, static_cast<std::uint16_t>(after(old)), relaxed)) {
    }
  }

  void fill(unsigned slot) noexcept {
    for (auto& s : slots_) s.store(static_cast<std::uint16_t>(slot), relaxed);
  }

  std::array<std::atomic<std::uint16_t>, std::size_t{1} << bits> slots_{};
};

}  // namespace heapwright::probe
