// Remote frees: how a block that another thread has allocated goes home, without a lock.
//
//   free ── outbox of this thread: batches by owner and class
//             └─ batch full ─┬─ inbox of the owner's class ── the owner's next refill
//                            └─ inbox closed or full ── central free list
//
// The freeing thread does one read-modify-write for a batch, the owner one for all batches that
// have come. Nobody walks a list: the owner's inbox becomes its free list. The owner's fast path
// does not look at its inbox.
//
// Memory is bounded: a thread that posts into a full inbox takes all of it and flushes it, so that
// blocks do not wait for an owner that is idle. A thread that has ended has a closed inbox: blocks
// go to the central free lists, for all.
//
// Many threads post, by compare-and-swap. A taker takes everything, so that no block can be seen
// twice (a stack that is popped as a whole has no ABA problem; Treiber, "Systems Programming:
// Coping with Parallelism").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heapwright/heap/page_map.hpp>

namespace heapwright {

/// Blocks of one class and one owner, newest first.
struct remote_batch {
  page_tag tag = 0;  ///< of the blocks; 0: none
  std::uint32_t count = 0;
  block* first = nullptr;
  block* last = nullptr;

  /// `Links`: the block_links of their heap.
  template <class Links>
  void add(block* b) noexcept {
    Links::set_next(b, first);
    std::atomic_signal_fence(std::memory_order_release);
    first = b;
    if (last == nullptr) last = b;
    ++count;
  }
};

/// What other threads have freed of one thread's blocks of one class: the address of the first
/// block (48 bits) and their number (16 bits), in one word. All zero is empty.
class remote_inbox {
  friend struct heap_describer;

 public:
  struct list {
    block* first;
    std::uint32_t count;
  };

  /// Posts a batch. Returns how many blocks there are then; 0: there are too many, and the batch is
  /// the caller's.
  template <class Links>
  [[nodiscard]] std::uint32_t post(const remote_batch& batch) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    std::uint64_t count = 0;
    do {
      const list before = of(seen);
      count = std::uint64_t{before.count} + batch.count;
      if (count > most) return 0;
      Links::set_next(batch.last, before.first);
    } while (!word_.compare_exchange_weak(seen, address_of(batch.first) | count << address_bits,
                                          std::memory_order_seq_cst, std::memory_order_relaxed));
    return static_cast<std::uint32_t>(count);
  }

  [[nodiscard]] bool is_empty() const noexcept { return word_.load(std::memory_order_relaxed) == 0; }

  /// All blocks that are there; for any thread. The look is ordered behind what the caller stored
  /// before, so that the owner that closes misses no batch.
  [[nodiscard]] list take() noexcept {
    if (word_.load(std::memory_order_seq_cst) == 0) return {nullptr, 0};
    return of(word_.exchange(0, std::memory_order_acquire));
  }

  /// For a census, which follows the list with care.
  [[nodiscard]] const block* peek() const noexcept { return of(word_.load(std::memory_order_relaxed)).first; }

  /// The number of blocks is at most this.
  static constexpr std::uint32_t most = 0xFFFF;

 private:
  static constexpr unsigned address_bits = 48;

  static list of(std::uint64_t word) noexcept {
    constexpr std::uint64_t address_mask = (std::uint64_t{1} << address_bits) - 1;
    return {reinterpret_cast<block*>(word & address_mask), static_cast<std::uint32_t>(word >> address_bits)};
  }

  std::atomic<std::uint64_t> word_{0};
};

/// The batches that one thread is filling. A tag has one place; two that meet there take turns.
/// Neighbouring classes of one owner have places of their own: most threads free the blocks of few
/// others at a time.
class remote_outbox {
  friend struct heap_describer;

 public:
  [[nodiscard]] remote_batch& batch_for(page_tag tag) noexcept {
    return batches_[(class_of(tag) + (tag >> owner_shift) * owner_step) % places];
  }
  [[nodiscard]] remote_batch* begin() noexcept { return batches_; }
  [[nodiscard]] remote_batch* end() noexcept { return batches_ + places; }
  [[nodiscard]] const remote_batch* begin() const noexcept { return batches_; }
  [[nodiscard]] const remote_batch* end() const noexcept { return batches_ + places; }

 private:
  static constexpr unsigned places = 64;
  static constexpr unsigned owner_step = 29;  ///< odd, so that owners begin at different places
  remote_batch batches_[places]{};
};

}  // namespace heapwright
