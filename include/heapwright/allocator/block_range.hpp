// Blocks that lie side by side in a range of memory: how a free one is found, cut and merged with
// its neighbours.
//
//   [ block | block | block ... | untouched ... | ceiling: what is above belongs to somebody else
//   ^--- begin_                 ^--- end_
//
// A block is   found in                                   becomes
//   live       nowhere: it is the caller's                free, when it is released
//   free       slots_ (up to 16 KiB) or tree_, by size    live, whole or cut in two; untouched,
//                                                         when merged with that
//
// Invariants: blocks tile [begin_, end_). With immediate merging a free block has no free neighbour
// and does not reach end_, and the block behind it says follows_free. With deferred merging nobody
// says so; while unmerged_ is false the rest holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <heapwright/allocator/size_slots.hpp>
#include <heapwright/allocator/size_tree.hpp>
#include <heapwright/allocator/tagged_block.hpp>
#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>

namespace heapwright {

/// When free neighbours become one block.
enum class merge {
  immediate,  ///< on each free, O(log n) at worst: no memory is lost to sizes that nobody asks for any more
  deferred,   ///< when no free block is large enough: a free is a push, but now and then a request is O(blocks)
};

/// Sizes are those of whole blocks, tag included: multiples of `Granule`, at least `smallest`.
/// Payloads are aligned to `Granule`. A caller that passes a ceiling never passes a lower one than
/// end().
template <std::size_t Granule, merge Merging>
class block_range {
  static constexpr bool merges_at_once = Merging == merge::immediate;

 public:
  static constexpr std::size_t smallest = std::max(tagged_block::smallest, Granule);
  static constexpr std::size_t largest_in_slots = 16 * KiB;

  /// Begins without a block, all untouched. Precondition: `begin` is tagged_block::tag_bytes less
  /// than a multiple of Granule.
  void open(std::uintptr_t begin) noexcept {
    begin_ = end_ = begin;
    forget_free();
  }

  [[nodiscard]] std::uintptr_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uintptr_t end() const noexcept { return end_; }

  /// A block of exactly `size` bytes that is at hand, live from now on, or null. Precondition: size
  /// <= largest_in_slots. O(1).
  [[nodiscard]] tagged_block* pop(std::size_t size, std::size_t slack) noexcept {
    tagged_block* const b = slots_.pop(size);
    if (b == nullptr) [[unlikely]]
      return nullptr;
    b->set_live(size, slack);
    if constexpr (merges_at_once) tagged_block::at(address_of(b) + size)->clear_follows_free();
    return b;
  }

  /// A live block cut from the best fit, or from untouched space below the ceiling; or null. O(log
  /// n), with deferred merging on average.
  [[nodiscard]] tagged_block* take(std::size_t size, std::uintptr_t ceiling) noexcept {
    ++searches_;
    tagged_block* const b = smallest_from(size);
    if (b != nullptr) return take_free(b, size);
    if (is_time_to_merge()) {
      merge_all();
      return take(size, ceiling);
    }
    if (ceiling - end_ < size) return nullptr;
    tagged_block* const fresh = tagged_block::at(end_);
    end_ += size;
    fresh->set_live(size);
    return fresh;
  }

  /// As take, with an aligned payload. What lies in front of it becomes a free block.
  [[nodiscard]] tagged_block* take_aligned(std::size_t size, std::size_t alignment, std::uintptr_t ceiling) noexcept {
    ++searches_;
    // The best fit is aligned by chance if it served such a request before. With so much more, any
    // block will do.
    for (const std::size_t wanted : {size, size + alignment + smallest}) {
      tagged_block* const b = smallest_from(wanted);
      if (b == nullptr) break;
      const std::size_t from = b->size();
      const std::size_t front = front_to_cut(address_of(b), alignment);
      if (front + size > from) continue;
      unlink(b, from);
      return free_front(b, front, cut(tagged_block::at(address_of(b) + front), from - front, size));
    }
    if (is_time_to_merge()) {
      merge_all();
      return take_aligned(size, alignment, ceiling);
    }
    const std::size_t front = front_to_cut(end_, alignment);
    if (front + size > ceiling - end_) return nullptr;
    tagged_block* const unused = tagged_block::at(end_);
    tagged_block* const b = tagged_block::at(end_ + front);
    end_ += front + size;
    b->set_live(size);
    return free_front(unused, front, b);
  }

  /// O(1) with deferred merging and size <= largest_in_slots, otherwise O(log n).
  void release(tagged_block* b, std::size_t size) noexcept {
    if constexpr (merges_at_once) {
      tagged_block* const next = tagged_block::at(address_of(b) + size);
      if (b->follows_free() || address_of(next) == end_ || next->is_free()) {
        release_merged(b, size);
        return;
      }
      next->set_follows_free();
    }
    make_free(b, size);
  }

  /// Grows a live block into the free ones behind it and the untouched space behind those, or cuts
  /// off what it needs no more. False: it stays as it was. O(log n) for each block that it grows
  /// into; immediate merging leaves one at most.
  [[nodiscard]] bool resize(tagged_block* b, std::size_t size, std::uintptr_t ceiling) noexcept {
    if (size > b->size() && !grow(b, size, ceiling)) return false;
    const std::size_t from = b->size();
    if (from - size >= smallest) {
      b->set_size(size);
      b->following()->set_live(from - size);
      release(b->following(), from - size);
    }
    return true;
  }

  /// Whether merge_all has something to do.
  [[nodiscard]] bool unmerged() const noexcept { return unmerged_; }

  /// Makes one block of all free neighbours, and untouched space of those at the end. O(blocks).
  void merge_all() noexcept {
    forget_free();
    blocks_then_ = 0;
    for (std::uintptr_t at = begin_; at != end_; ++blocks_then_) {
      const std::uintptr_t past = past_free(at, end_);
      if (past == at) {
        at += tagged_block::at(at)->size();
      } else if (past == end_) {
        end_ = at;
      } else {
        make_free(tagged_block::at(at), past - at);
        at = past;
      }
    }
    unmerged_ = false;  // make_free set it
  }

  /// Calls f(block) for every block, live or free, in the order of their addresses. O(blocks).
  template <class Visitor>
  void for_each(Visitor&& f) const {
    for (std::uintptr_t at = begin_; at != end_; at += tagged_block::at(at)->size()) f(tagged_block::at(at));
  }

 private:
  template <class Heap>
  friend struct best_fit_audit;

  static_assert(largest_in_slots >= size_tree::smallest_block);

  // Taking

  /// Before the range grows; but only so often that all walks together are a few steps per
  /// operation: since the last one each search and each resize added two blocks at most.
  [[nodiscard]] bool is_time_to_merge() const noexcept { return unmerged_ && searches_ > blocks_then_ / 8; }

  [[nodiscard]] tagged_block* smallest_from(std::size_t size) const noexcept {
    tagged_block* const b = size <= largest_in_slots ? slots_.smallest_from(size) : nullptr;
    return b != nullptr ? b : tree_.smallest_from(size);
  }

  [[nodiscard, gnu::noinline]] tagged_block* take_free(tagged_block* b, std::size_t size) noexcept {
    const std::size_t from = b->size();
    unlink(b, from);
    return cut(b, from, size);
  }

  /// A live block of `size` bytes from a free one of `from`, which is in no list. A rest too small
  /// for a block stays with it.
  [[nodiscard]] tagged_block* cut(tagged_block* b, std::size_t from, std::size_t size) noexcept {
    if (from - size >= smallest) {
      b->set_live(size);
      make_free(b->following(), from - size);
    } else {
      b->set_live(from);
      if constexpr (merges_at_once) b->following()->clear_follows_free();
    }
    return b;
  }

  /// Bytes to leave between `block` and one whose payload is aligned: none, or enough for a block.
  [[nodiscard]] static std::size_t front_to_cut(std::uintptr_t block, std::size_t alignment) noexcept {
    const std::uintptr_t payload = block + tagged_block::tag_bytes;
    const std::size_t front = align_up(payload, alignment) - payload;
    return front == 0 || front >= smallest ? front : front + alignment;
  }

  [[nodiscard]] tagged_block* free_front(tagged_block* front, std::size_t size, tagged_block* b) noexcept {
    if (size != 0) {
      make_free(front, size);
      if constexpr (merges_at_once) b->set_follows_free();
    }
    return b;
  }

  // Merging

  [[gnu::noinline]] void release_merged(tagged_block* b, std::size_t size) noexcept {
    // The tag stays behind in the merged block, where it still tells a double free.
    if constexpr (tagged_block::is_checked) b->set_flag_free();
    if (b->follows_free()) {
      b = b->preceding();
      size += b->size();
      unlink(b, b->size());
    }
    tagged_block* const next = tagged_block::at(address_of(b) + size);
    if (address_of(next) == end_) {
      end_ = address_of(b);
      return;
    }
    if (next->is_free()) {
      size += next->size();
      unlink(next, next->size());
    } else {
      next->set_follows_free();
    }
    make_free(b, size);
  }

  [[nodiscard]] bool grow(tagged_block* b, std::size_t size, std::uintptr_t ceiling) noexcept {
    const std::uintptr_t needed = address_of(b) + size;
    std::uintptr_t past = past_free(address_of(b->following()), needed);
    if (past < needed && (past != end_ || needed > ceiling)) return false;
    for (tagged_block* f = b->following(); address_of(f) != past; f = f->following()) unlink(f, f->size());
    if (past < needed) past = end_ = needed;
    b->set_size(past - address_of(b));
    if (merges_at_once && past != end_) b->following()->clear_follows_free();
    return true;
  }

  /// Where the free blocks that begin at `at` end, or the first of them that reaches `needed`.
  [[nodiscard]] std::uintptr_t past_free(std::uintptr_t at, std::uintptr_t needed) const noexcept {
    while (at < needed && at != end_ && tagged_block::at(at)->is_free()) at += tagged_block::at(at)->size();
    return at;
  }

  // Free blocks

  void make_free(tagged_block* b, std::size_t size) noexcept {
    b->set_free(size);
    if constexpr (merges_at_once) {
      b->write_size_at_end(size);
    } else {
      unmerged_ = true;
    }
    if (size <= largest_in_slots) [[likely]] {
      slots_.push(b, size);
    } else {
      tree_.insert(b, size);
    }
  }

  void unlink(tagged_block* b, std::size_t size) noexcept {
    if (size <= largest_in_slots) [[likely]] {
      slots_.remove(b, size);
    } else {
      tree_.remove(b);
    }
  }

  void forget_free() noexcept {
    slots_.clear();
    tree_.clear();
    unmerged_ = false;
    searches_ = 0;
  }

  size_slots<Granule, largest_in_slots> slots_;
  size_tree tree_;
  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
  std::size_t searches_ = 0;     ///< since all neighbours were merged, with deferred merging
  std::size_t blocks_then_ = 0;  ///< blocks that there were then
  bool unmerged_ = false;        ///< a block was freed since then
};

}  // namespace heapwright
