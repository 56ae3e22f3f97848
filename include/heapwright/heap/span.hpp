// A span is a run of heap pages with one use. Its record lives apart from the pages, so that an
// overflow of a block cannot reach it.
//
// States             pages are                         linked in                 page map
//   free_resident    free, contents in memory          a bin of the page heap    span at both ends
//   free_decommitted free, given back or not touched   a bin of the page heap    span at both ends
//   cut              blocks of one size class          the class's list, or      span and tag
//                                                      none: a thread has it     at each page
//   mixed            blocks of many (mixed_spans.hpp)  nothing                   span and mixed_tag
//                                                                                at each page
//   large            one block, of a page-run class    nothing                   span at both ends,
//                    or none (0)                                                 tag at the first
//
// Of a cut span:  capacity = live + length(free) + (capacity - carved)
// where live counts the blocks that are outside: with the program, or in a thread cache. A carved
// block has gone to a thread at least once. The blocks beyond are fresh: nobody has touched them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/heap/class_table.hpp>

namespace heapwright {

/// A free block: its first word links to the next (block_links.hpp).
struct block {
  std::uintptr_t link;
};

/// Where classes have pages of their own: free_large is decommitted, for blocks without a class
/// alone; retired is an empty span of a class. Of large blocks with guard pages: guard, the pages
/// before one, which cannot be touched; room, decommitted pages behind one, into which it may grow.
enum class span_state : std::uint8_t {
  free_resident,
  free_decommitted,
  cut,
  large,
  mixed,
  free_large,
  retired,
  guard,
  room
};

/// Where a cut span is: it has no free block; or it is in its class's list; or one thread refills
/// from it.
enum class span_place : std::uint8_t { exhausted, listed, attached };

struct span {
  std::byte* start = nullptr;
  std::size_t pages = 0;
  span* next = nullptr;
  span* previous = nullptr;

  // Of a cut span, guarded by the lock of its class. Of a large block without a class: slack, the
  // bytes behind what was asked for.
  union {
    block* free = nullptr;
    std::size_t slack;
  };
  std::uint32_t live = 0;
  std::uint32_t carved = 0;
  std::uint32_t capacity = 0;
  std::uint32_t owner = 0;  ///< tag bits of the thread that last refilled from it
  std::uint8_t size_class = 0;
  span_state state = span_state::free_decommitted;
  span_place place = span_place::exhausted;

  bool zeroed = false;              ///< free_decommitted and large: reads as zero; cut: its fresh blocks do
  std::uint8_t guard_pages = 0;     ///< all but free ones: heap pages at the end that cannot be touched
  std::uint8_t alignment_log2 = 0;  ///< of a large block without a class; 0: none was asked for
  std::uint16_t offset = 0;         ///< where the block begins, or the first of a cut span: bytes from the start

  [[nodiscard]] std::size_t bytes() const noexcept { return pages * heap_page; }
  [[nodiscard]] std::byte* end() const noexcept { return start + bytes(); }

  /// Where the guard pages begin.
  [[nodiscard]] std::byte* usable_end() const noexcept { return end() - guard_pages * heap_page; }
  [[nodiscard]] bool contains(const void* p) const noexcept { return address_of(p) - address_of(start) < bytes(); }

  /// The block, or the first of a cut span.
  [[nodiscard]] std::byte* block_begin() const noexcept { return start + offset; }

  /// Of a large block.
  [[nodiscard]] std::size_t block_bytes() const noexcept {
    return static_cast<std::size_t>(usable_end() - block_begin());
  }

  /// Of a large block without a class: what was asked for. A census asks while the block's owner
  /// resizes it.
  [[nodiscard]] std::size_t asked_bytes() const noexcept {
    const std::size_t bytes = block_bytes(), behind = __atomic_load_n(&slack, __ATOMIC_RELAXED);
    return behind < bytes ? bytes - behind : bytes;
  }

  void set_asked_bytes(std::size_t size) noexcept { __atomic_store_n(&slack, block_bytes() - size, __ATOMIC_RELAXED); }
};
static_assert(sizeof(span) == 64);

/// A doubly linked list through span::next and span::previous; all zero is empty. The caller holds
/// the lock that guards it.
class span_list {
 public:
  [[nodiscard]] span* front() const noexcept { return head_; }
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

  void push_front(span* s) noexcept {
    s->previous = nullptr;
    s->next = head_;
    if (head_ != nullptr) head_->previous = s;
    head_ = s;
  }

  void remove(span* s) noexcept {
    (s->previous != nullptr ? s->previous->next : head_) = s->next;
    if (s->next != nullptr) s->next->previous = s->previous;
    s->next = s->previous = nullptr;
  }

 private:
  span* head_ = nullptr;
};

}  // namespace heapwright
