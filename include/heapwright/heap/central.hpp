// The centre of one size class: the spans cut into it, shared by all threads under one lock. Threads draw batches of blocks
// from it and give batches back; what moves is always a list of blocks, so that the lock is taken once per batch.
//
// A span with something to give is either listed here, for anyone to take, or attached to one thread, which alone draws from
// it. A span with nothing to give is neither; the first block that comes back lists it again. Blocks always come back to
// their own span, whoever frees them. A span whose blocks are all back leaves the class and goes to the page heap, except
// that the last listed one stays, so that a class in light use does not fetch and return the same span for ever.
//
// Drawing from a span puts the drawing thread's owner bits into the page map, so that the thread that frees a block can see
// whether it drew it itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/heap/page_heap.hpp>

namespace heapwright {

/// A list of free blocks, with its end so that it can be spliced.
struct block_list {
  block* first = nullptr;
  block* last = nullptr;
  std::uint32_t count = 0;
};

template <recipe R, platform OS>
class central_class {
  using classes = class_table<R>;
  using pages = page_heap<R, OS>;

 public:
  using lock_type = lock<OS>;

  /// Up to `wanted` blocks of class c for the thread with these owner bits, drawn from its attached span, which is replaced when
  /// it has no more to give. Empty when the system has no memory.
  [[nodiscard, gnu::noinline]] block_list draw(unsigned c, std::uint32_t wanted, page_tag owner, span*& attached,
                                pages& heap) noexcept {
    holding guard(lock_);
    block_list drawn;
    if (attached != nullptr) draw_from(attached, c, wanted, drawn);  // leaves null when it has no more to give
    while (drawn.count < wanted) {
      // What was got already will do where a fresh span would be needed for more.
      span* const next = drawn.count == 0 ? next_span(c, owner, heap) : next_listed(owner, heap);
      if (next == nullptr) break;
      next->place = span_place::attached;
      attached = next;
      draw_from(attached, c, wanted, drawn);
    }
    return drawn;
  }

  /// Takes back `n` blocks of class c, the first of a list; returns what follows them.
  [[gnu::noinline]] block* give_back(unsigned c, block* first, std::uint32_t n, pages& heap) noexcept {
    holding guard(lock_);
    for (; n > 0; --n) {
      block* const b = first;
      first = b->next;
      give_back_one(c, b, heap);
    }
    return first;
  }

  /// Takes over the span attached to a thread that no longer wants it.
  [[gnu::noinline]] void detach(span* s, pages& heap) noexcept {
    holding guard(lock_);
    s->owner = 0;
    if (s->live == 0) {
      retire(s, heap);
    } else {
      list(s);
    }
  }

  /// Gives the span that was kept though all its blocks are back to the page heap.
  void trim(pages& heap) noexcept {
    holding guard(lock_);
    for (span* s = listed_.front(); s != nullptr;) {
      span* const next = s->next;
      if (s->live == 0) {
        listed_.remove(s);
        retire(s, heap);
      }
      s = next;
    }
  }

  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

  /// Blocks that are outside: with the program or in the stock of a thread.
  [[nodiscard]] std::uint64_t live() noexcept {
    holding guard(lock_);
    return live_;
  }

 private:
  static bool exhausted(const span* s, unsigned c) noexcept {
    return s->free == nullptr && s->carved == classes::of(c).capacity;
  }

  void list(span* s) noexcept {
    listed_.push_front(s);
    s->place = span_place::listed;
  }

  /// A span for this thread to draw from, with its owner bits at every page; null when the system has no memory.
  span* next_span(unsigned c, page_tag owner, pages& heap) noexcept {
    if (span* const s = next_listed(owner, heap)) return s;
    span* const s = heap.allocate(classes::of(c).span_pages, heap_page, span_state::cut);
    if (s == nullptr) return nullptr;
    s->size_class = static_cast<std::uint8_t>(c);
    s->owner = owner;
    heap.map().set_all(s, owner | c);
    return s;
  }

  /// A listed span, one that this thread drew from before if there is one near the front.
  span* next_listed(page_tag owner, pages& heap) noexcept {
    constexpr int tries = 8;
    span* s = listed_.front();
    if (s == nullptr) return nullptr;
    span* candidate = s;
    for (int i = 0; candidate != nullptr && i < tries; ++i, candidate = candidate->next) {
      if (candidate->owner == owner) {
        s = candidate;
        break;
      }
    }
    listed_.remove(s);
    if (s->owner != owner) {
      s->owner = owner;
      heap.map().set_all_tags(s, owner | s->size_class);
    }
    return s;
  }

  void draw_from(span*& attached, unsigned c, std::uint32_t wanted, block_list& drawn) noexcept {
    span* const s = attached;
    const std::uint32_t before = drawn.count;
    while (s->free != nullptr && drawn.count < wanted) {
      block* const b = s->free;
      s->free = b->next;
      append(drawn, b);
    }
    const std::size_t size = classes::of(c).size;
    while (s->carved < classes::of(c).capacity && drawn.count < wanted) {
      append(drawn, reinterpret_cast<block*>(s->start + s->carved * size));
      ++s->carved;
    }
    s->live += drawn.count - before;
    live_ += drawn.count - before;
    if (drawn.last != nullptr) drawn.last->next = nullptr;
    if (exhausted(s, c)) {
      s->place = span_place::exhausted;
      attached = nullptr;
    }
  }

  static void append(block_list& drawn, block* b) noexcept {
    (drawn.last != nullptr ? drawn.last->next : drawn.first) = b;
    drawn.last = b;
    ++drawn.count;
  }

  void give_back_one(unsigned c, block* b, pages& heap) noexcept {
    span* const s = heap.map().span_at(b);
    invariant(s != nullptr && s->size_class == c && s->live > 0, "a block came back to a span it is not of");
    b->next = s->free;
    s->free = b;
    --s->live;
    --live_;
    if (s->place == span_place::exhausted) list(s);
    const bool alone = s->next == nullptr && s->previous == nullptr;
    if (s->live == 0 && s->place == span_place::listed && !alone) {
      listed_.remove(s);
      retire(s, heap);
    }
  }

  void retire(span* s, pages& heap) noexcept {
    heap.map().set_all_tags(s, 0);
    heap.release(s);
  }

  lock_type lock_;
  span_list listed_;
  std::uint64_t live_ = 0;
};

}  // namespace heapwright
