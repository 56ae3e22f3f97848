// The centre of one size class: the spans cut into it, shared by all threads under one lock. Threads draw batches of blocks
// from it and give batches back, lists of blocks that were in use before or runs of fresh ones, so that the lock is taken once per batch.
//
// A span with something to give is either listed here, for anyone to take, or attached to one thread, which alone draws from
// it. A span with nothing to give is neither; the first block that comes back lists it again. Blocks always come back to
// their own span, whoever frees them. A span whose blocks are all back leaves the class and goes to the page heap, except
// that the last listed one stays, or a few short ones, so that a class in light use does not fetch and return the same span for ever.
//
// Drawing from a span puts the drawing thread's owner bits into the page map, so that the thread that frees a block can see
// whether it drew it itself. Where no two blocks begin in the same page they go to the page of each block drawn. Such spans,
// which are long, are not attached: all threads draw from the same few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <heapwright/heap/page_heap.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class central_class {
  using classes = class_table<R>;
  using pages = page_heap<R, OS>;

 public:
  using lock_type = heap_lock<R, OS>;

  /// What a draw has: a list of blocks that have come back; or else blocks that nobody has touched, one behind the other; or nothing,
  /// when the system has no memory.
  struct drawn {
    block* returned = nullptr;
    std::byte* fresh = nullptr;
    std::uint32_t fresh_count = 0;
  };

  /// Free blocks of class c for the thread with these owner bits, from its attached span, which is replaced when another
  /// has blocks that came back, or when it has no more to give: all that have come back to the span, without walking over
  /// them, or else up to `wanted` fresh ones. From a shared span, where blocks have tags of their own: up to `wanted` that have come back, or one
  /// fresh one, and nothing is attached.
  [[nodiscard, gnu::noinline]] drawn draw(unsigned c, std::uint32_t wanted, page_tag owner, span*& attached,
                                          pages& heap) noexcept {
    if (classes::has_own_tags(c)) return draw_shared(c, wanted, owner, heap);
    return draw_attached(c, wanted, owner, attached, heap);
  }

  /// Takes back `n` fresh blocks, the last that their span has handed out, as untouched as they were.
  [[gnu::noinline]] void undraw(std::byte* fresh, std::uint32_t n, pages& heap) noexcept {
    holding guard(lock_);
    span* const s = heap.map().span_at(fresh);
    invariant(s->carved >= n && s->live >= n, "more fresh blocks came back to a span than it has handed out");
    s->carved -= n;
    s->live -= n;
    figures_.outside -= n;
    if (s->place == span_place::exhausted) list(s);
    if (s->live == 0 && s->place == span_place::listed) keep_or_retire(s, heap);
  }

  /// Takes back `n` blocks of class c, the first of a list; returns what follows them.
  [[gnu::noinline]] block* give_back(unsigned c, block* first, std::uint32_t n, pages& heap) noexcept {
    holding guard(lock_);
    figures_.outside -= n;
    while (n > 0) {
      // Neighbours in the list that are of one span go back as they are, linked already.
      span* const s = heap.map().span_at(first);
      invariant(s != nullptr && s->size_class == c, "a block came back to a span it is not of");
      block* last = first;
      std::uint32_t run = 1;
      for (; run < n && s->contains(last->next); ++run) last = last->next;
      block* const following = last->next;
      give_back_run(s, first, last, run, heap);
      first = following;
      n -= run;
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
        unlist(s);
        retire(s, heap);
      }
      s = next;
    }
  }

  /// Whether less than half of the class's spans is in use, and more than a little could be had by gathering it.
  [[nodiscard, gnu::noinline]] bool is_sparse(unsigned c) noexcept {
    holding guard(lock_);
    return figures_.span_bytes > 2 * figures_.outside * classes::of(c).size + R.spans.worth_gathering;
  }

  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

  /// Blocks that are outside: with the program or in the stock of a thread.
  [[nodiscard]] std::uint64_t live() noexcept {
    holding guard(lock_);
    return figures_.outside;
  }

  /// The same for who holds the lock.
  [[nodiscard]] std::uint64_t live_held() const noexcept { return figures_.outside; }

  /// For readers in other processes.
  [[nodiscard]] const class_figures& figures() const noexcept { return figures_; }

 private:
  drawn draw_attached(unsigned c, std::uint32_t wanted, page_tag owner, span*& attached, pages& heap) noexcept {
    holding guard(lock_);
    if (attached != nullptr && attached->free == nullptr) prefer_returned(owner, attached, heap);
    if (attached == nullptr) attached = next_span(c, owner, heap);
    span* const s = attached;
    if (s == nullptr) return {};
    const drawn d = s->free != nullptr ? take_returned(s) : take_fresh(s, c, wanted);
    if (s->carved == s->capacity) {
      s->place = span_place::exhausted;
      attached = nullptr;
    } else {
      s->place = span_place::attached;
    }
    return d;
  }

  drawn draw_shared(unsigned c, std::uint32_t wanted, page_tag owner, pages& heap) noexcept {
    const drawn d = take_shared(c, wanted, heap);
    for (const block* b = d.returned; b != nullptr; b = b->next) heap.map().set_tag(b, tag_of(owner, c));
    if (d.fresh != nullptr) heap.map().set_tag(d.fresh, tag_of(owner, c));
    return d;
  }

  /// From a span that is listed before and after, unless it has no more to give; what has come back goes first.
  drawn take_shared(unsigned c, std::uint32_t wanted, pages& heap) noexcept {
    holding guard(lock_);
    span* s = near_front([](const span* t) { return t->free != nullptr; });
    if (s == nullptr) s = listed_.front();
    if (s != nullptr) {
      unlist(s);
    } else if (s = new_span(c, 0, heap); s == nullptr) {
      return {};
    }
    const drawn d = s->free != nullptr ? take_some_returned(s, wanted) : take_fresh(s, c, 1);
    if (s->live == s->capacity) {
      s->place = span_place::exhausted;
    } else {
      list(s);
    }
    return d;
  }

  void list(span* s) noexcept {
    listed_.push_front(s);
    s->place = span_place::listed;
  }

  void unlist(span* s) noexcept {
    listed_.remove(s);
    if (s->live == 0) empty_bytes_ -= s->bytes();
  }

  /// A listed span whose blocks have all come back stays if few do.
  void keep_or_retire(span* s, pages& heap) noexcept {
    empty_bytes_ += s->bytes();
    if (empty_bytes_ <= R.spans.kept_empty || (s->next == nullptr && s->previous == nullptr)) return;
    unlist(s);
    retire(s, heap);
  }

  /// A span for this thread to draw from, with its owner bits at every page; null when the system has no memory.
  span* next_span(unsigned c, page_tag owner, pages& heap) noexcept {
    if (span* const s = next_listed(owner, heap)) return s;
    return new_span(c, owner, heap);
  }

  span* new_span(unsigned c, page_tag owner, pages& heap) noexcept {
    const std::size_t size = classes::of(c).size;
    const std::size_t bytes = classes::span_pages(c, figures_.outside * size) * heap_page;
    span* const s = heap.allocate(bytes / heap_page, heap_page, span_state::cut, classes::lines_of_span(c, bytes));
    if (s == nullptr) return nullptr;
    figures_.span_bytes += s->bytes();
    s->capacity = static_cast<std::uint32_t>(bytes / size);
    s->size_class = static_cast<std::uint8_t>(c);
    s->owner = owner;
    heap.map().set_all(s, tag_of(owner, c));
    return s;
  }

  /// Exchanges an attached span that has only fresh blocks to give for one of this thread's that has others: they are in memory.
  void prefer_returned(page_tag owner, span*& attached, pages& heap) noexcept {
    span* const s = near_front([owner](const span* t) { return t->owner == owner && t->free != nullptr; });
    if (s == nullptr) return;
    unlist(s);
    list(attached);
    if (attached->live == 0) keep_or_retire(attached, heap);
    attached = s;
  }

  /// The first of the first few listed spans of which this is true, or null.
  template <class Predicate>
  span* near_front(Predicate is) const noexcept {
    constexpr int tries = 8;
    span* s = listed_.front();
    for (int i = 0; s != nullptr && i < tries; ++i, s = s->next) {
      if (is(s)) return s;
    }
    return nullptr;
  }

  /// A listed span, one that this thread drew from before if there is one near the front.
  span* next_listed(page_tag owner, pages& heap) noexcept {
    span* s = near_front([owner](const span* t) { return t->owner == owner; });
    if (s == nullptr) s = listed_.front();
    if (s == nullptr) return nullptr;
    unlist(s);
    if (s->owner != owner) {
      s->owner = owner;
      heap.map().set_all_tags(s, tag_of(owner, s->size_class));
    }
    return s;
  }

  drawn take_returned(span* s) noexcept {
    figures_.outside += s->carved - s->live;
    s->live = s->carved;
    return {.returned = std::exchange(s->free, nullptr)};
  }

  drawn take_some_returned(span* s, std::uint32_t wanted) noexcept {
    block* const first = s->free;
    block* last = first;
    std::uint32_t n = 1;
    for (; n < wanted && last->next != nullptr; ++n) last = last->next;
    s->free = std::exchange(last->next, nullptr);
    s->live += n;
    figures_.outside += n;
    return {.returned = first};
  }

  /// The next blocks of a span that have never been used; those beyond stay with it.
  drawn take_fresh(span* s, unsigned c, std::uint32_t wanted) noexcept {
    std::byte* const first = s->block_begin() + s->carved * std::size_t{classes::of(c).size};
    const std::uint32_t n = std::min(wanted, s->capacity - s->carved);
    s->carved += n;
    s->live += n;
    figures_.outside += n;
    return {.fresh = first, .fresh_count = n};
  }

  void give_back_run(span* s, block* first, block* last, std::uint32_t n, pages& heap) noexcept {
    invariant(s->live >= n, "more blocks came back to a span than it has handed out");
    last->next = s->free;
    s->free = first;
    s->live -= n;
    if (s->place == span_place::exhausted) list(s);
    if (s->live == 0 && s->place == span_place::listed) keep_or_retire(s, heap);
  }

  void retire(span* s, pages& heap) noexcept {
    figures_.span_bytes -= s->bytes();
    heap.map().set_all_tags(s, 0);
    heap.release(s);
  }

  lock_type lock_;
  span_list listed_;
  class_figures figures_;
  std::uint64_t empty_bytes_ = 0;  ///< of listed spans with live == 0
};

}  // namespace heapwright
