// Central free list of one size class: middle of the heap, between thread caches and the page heap.
//
// Owns the class's spans. Thread caches refill from it and flush to it in batches, so that the lock
// is taken once per batch. A block always comes back to its own span, whichever thread frees it.
//
// Span states   listed      has blocks to give; any thread may take it
//               attached    has blocks to give; one thread alone refills from it
//               exhausted   has none; the first block that comes back lists it again
//               empty       listed, and all blocks have come back: it goes to the page heap, but at
//                           most span_plan::kept_empty bytes stay, so that a class in light use
//                           does not thrash
//
// Refilling from a span puts the thread's owner bits into the page map, so that the thread that
// frees a block sees whether it is its own. Where no two blocks begin in the same page (from 4 KiB
// on) each block has a tag of its own: such spans are not attached, and all threads refill from the
// same few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <heapwright/heap/block_links.hpp>
#include <heapwright/heap/block_seal.hpp>
#include <heapwright/heap/misuse.hpp>
#include <heapwright/heap/page_heap.hpp>
#include <heapwright/heap/zero_memory.hpp>

namespace heapwright {

/// All zero is empty. Every function takes the class and the page heap, which are the same in each
/// call.
template <const recipe& R, platform OS>
class central_free_list {
  using classes = class_table<R>;
  using pages = page_heap<R, OS>;
  using caller_mistakes = misuse<R, OS>;
  using links = block_links<R>;

 public:
  using lock_type = heap_lock<R, OS>;

  /// What a refill gets: a list of blocks that have come back; or else fresh blocks, which nobody
  /// has touched, side by side; or nothing, when the system has no memory.
  struct refill_result {
    block* returned = nullptr;
    std::byte* fresh = nullptr;
    std::uint32_t fresh_count = 0;
  };

  /// Free blocks for the thread with these owner bits. From its attached span: all blocks that have
  /// come back, without walking over them, or else up to `wanted` fresh ones. The attached span is
  /// replaced when it has no more to give, or when another has blocks that came back. From a span
  /// that is attached to no thread: up to `wanted` blocks that have come back, or one fresh one;
  /// nothing is attached.
  [[nodiscard, gnu::noinline]] refill_result refill(unsigned c, std::uint32_t wanted, page_tag owner, span*& attached,
                                                    pages& heap) noexcept {
    if (classes::has_own_tags(c)) return refill_from_unattached(c, wanted, owner, heap);
    return refill_from_attached(c, wanted, owner, attached, heap);
  }

  /// Takes back the last `n` fresh blocks that their span has given. Does not write to them.
  [[gnu::noinline]] void flush_fresh(std::byte* fresh, std::uint32_t n, pages& heap) noexcept {
    section here(lock_);
    span* const s = heap.map().span_at(fresh);
    invariant(s->carved >= n && s->live >= n, "more fresh blocks came back to a span than it has handed out");
    s->carved -= n;
    s->live -= n;
    figures_.outside -= n;
    if (s->place == span_place::exhausted) list(s);
    if (s->live == 0 && s->place == span_place::listed) keep_or_retire(s, heap, here);
  }

  /// Takes back `n` blocks, the first of a list. Returns the rest of the list.
  [[gnu::noinline]] block* flush(unsigned c, block* first, std::uint32_t n, pages& heap) noexcept {
    section here(lock_);
    figures_.outside -= n;
    while (n > 0) {
      // Neighbours in the list that are of one span go back as they are, linked already.
      span* const s = heap.map().span_at(first);
      invariant(s != nullptr && s->size_class == c, "a block came back to a span it is not of");
      block* last = first;
      std::uint32_t run = 1;
      // The analyser does not know that the invariant holds.
      bool is_right = is_as_freed(first, *s);  // NOLINT(clang-analyzer-core.NonNullParamChecker)
      // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
      for (; is_right && run < n && s->contains(links::next(last)); ++run) {
        last = links::next(last);
        is_right = is_as_freed(last, *s);
      }
      if (!is_right) [[unlikely]]
        return here.found = mistake_with(last), nullptr;
      if (run > s->live) [[unlikely]]
        return here.found = {"double free, of this block or one near it", first}, nullptr;
      block* const following = links::next(last);
      insert(s, first, last, run, heap, here);
      first = following;
      n -= run;
    }
    return first;
  }

  /// The span that was attached to a thread is anybody's.
  [[gnu::noinline]] void detach(span* s, pages& heap) noexcept {
    section here(lock_);
    s->owner = 0;
    if (s->live == 0) {
      retire(s, heap, here);
    } else {
      list(s);
    }
  }

  /// Gives the empty spans to the page heap.
  void trim(pages& heap) noexcept {
    section here(lock_);
    for (span* s = listed_.front(); s != nullptr;) {
      span* const next = s->next;
      if (s->live == 0) {
        unlist(s);
        retire(s, heap, here);
      }
      s = next;
    }
  }

  /// True when more than half of the spans' bytes is free, by more than
  /// span_plan::worth_scavenging bytes.
  [[nodiscard, gnu::noinline]] bool is_sparse(unsigned c) noexcept {
    holding guard(lock_);
    return figures_.span_bytes > 2 * figures_.outside * classes::of(c).size + R.spans.worth_scavenging;
  }

  /// Blocks allocated from this class: live, or in a thread cache.
  [[nodiscard]] std::uint64_t outside() noexcept {
    holding guard(lock_);
    return figures_.outside;
  }

  /// For readers in other processes, and for those who hold the lock.
  [[nodiscard]] const class_figures& figures() const noexcept { return figures_; }

  /// Of a class with mixed spans, which count here under their own lock.
  [[nodiscard]] class_figures& figures_of_mixed() noexcept { return figures_; }

  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

 private:
  struct found_mistake {
    const char* what = nullptr;
    const block* at = nullptr;
    const char* detail = "(found at its free or some time later)";
  };

  /// Holds the lock for a scope. What the program did wrong and was found in it ends the process
  /// behind it: a handler of SIGABRT may call malloc.
  struct [[nodiscard]] section {
    explicit section(lock_type& l) noexcept : lock(l) { lock.acquire(); }
    ~section() {
      lock.release();
      if (found.what != nullptr) [[unlikely]]
        die(found.what, found.at, found.detail);
    }
    section(const section&) = delete;
    section& operator=(const section&) = delete;

    lock_type& lock;
    found_mistake found;
  };

  /// Of a freed block that goes back to its span.
  [[nodiscard]] static bool is_as_freed(const block* b, const span& s) noexcept {
    return caller_mistakes::was_given_out(b, s) && links::is_whole(b);
  }
  [[nodiscard]] static found_mistake mistake_with(const block* b) noexcept {
    return links::is_whole(b) ? found_mistake{"free of a pointer into a block", b} : written(b);
  }
  [[nodiscard]] static found_mistake written(const block* b) noexcept {
    return {"write after free", b, "(in a free block, found some time after the write)"};
  }

  // --- refilling

  refill_result refill_from_attached(unsigned c, std::uint32_t wanted, page_tag owner, span*& attached,
                                     pages& heap) noexcept {
    section here(lock_);
    if (attached != nullptr && attached->free == nullptr) prefer_returned(owner, attached, heap, here);
    if (attached == nullptr) attached = next_span(c, owner, heap);
    span* const s = attached;
    if (s == nullptr) return {};
    const refill_result r = s->free != nullptr ? take_returned(s) : take_fresh(s, c, wanted);
    if (s->carved == s->capacity) {
      s->place = span_place::exhausted;
      attached = nullptr;
    } else {
      s->place = span_place::attached;
    }
    return r;
  }

  refill_result refill_from_unattached(unsigned c, std::uint32_t wanted, page_tag owner, pages& heap) noexcept {
    const refill_result r = take_unattached(c, wanted, heap);
    for (const block* b = r.returned; b != nullptr; b = links::next(b)) heap.map().set_tag(b, tag_of(owner, c));
    if (r.fresh != nullptr) heap.map().set_tag(r.fresh, tag_of(owner, c));
    return r;
  }

  /// From a span that is listed before and after, unless it is exhausted; blocks that have come
  /// back go first.
  refill_result take_unattached(unsigned c, std::uint32_t wanted, pages& heap) noexcept {
    holding guard(lock_);
    span* s = near_front([](const span* t) { return t->free != nullptr; });
    if (s == nullptr) s = listed_.front();
    if (s != nullptr) {
      unlist(s);
    } else if (s = new_span(c, 0, heap); s == nullptr) {
      return {};
    }
    const refill_result r = s->free != nullptr ? take_some_returned(s, wanted) : take_fresh(s, c, 1);
    if (s->live == s->capacity) {
      s->place = span_place::exhausted;
    } else {
      list(s);
    }
    return r;
  }

  refill_result take_returned(span* s) noexcept {
    figures_.outside += s->carved - s->live;
    s->live = s->carved;
    return {.returned = std::exchange(s->free, nullptr)};
  }

  refill_result take_some_returned(span* s, std::uint32_t wanted) noexcept {
    block* const first = s->free;
    block* last = first;
    std::uint32_t n = 1;
    for (; n < wanted && links::next(last) != nullptr; ++n) last = links::next(last);
    s->free = links::next(last);
    if (links::is_whole(last)) links::set_next(last, nullptr);  // if not, the thread that pops it will see
    s->live += n;
    figures_.outside += n;
    return {.returned = first};
  }

  /// The next blocks of a span that have never been used; those beyond stay with it.
  refill_result take_fresh(span* s, unsigned c, std::uint32_t wanted) noexcept {
    std::byte* const first = s->block_begin() + s->carved * std::size_t{classes::of(c).size};
    const std::uint32_t n = std::min(wanted, s->capacity - s->carved);
    s->carved += n;
    s->live += n;
    figures_.outside += n;
    return {.fresh = first, .fresh_count = n};
  }

  // --- spans

  void list(span* s) noexcept {
    listed_.push_front(s);
    s->place = span_place::listed;
  }

  void unlist(span* s) noexcept {
    listed_.remove(s);
    if (s->live == 0) empty_bytes_ -= s->bytes();
  }

  void insert(span* s, block* first, block* last, std::uint32_t n, pages& heap, section& here) noexcept {
    links::set_next(last, s->free);
    s->free = first;
    s->live -= n;
    if (s->place == span_place::exhausted) list(s);
    if (s->live == 0 && s->place == span_place::listed) keep_or_retire(s, heap, here);
  }

  /// A listed span has become empty.
  void keep_or_retire(span* s, pages& heap, section& here) noexcept {
    empty_bytes_ += s->bytes();
    if (empty_bytes_ <= R.spans.kept_empty || (s->next == nullptr && s->previous == nullptr)) return;
    unlist(s);
    retire(s, heap, here);
  }

  void retire(span* s, pages& heap, [[maybe_unused]] section& here) noexcept {
    if constexpr (R.hardening.check_reuse) look_for_writes(*s, here.found);
    figures_.span_bytes -= s->bytes();
    heap.map().set_all_tags(s, 0);
    heap.release(s);
  }

  /// Of a span all of whose blocks are free, before its pages go back: nobody would see it then.
  static void look_for_writes(const span& s, found_mistake& found) noexcept {
    const std::size_t size = classes::of(s.size_class).size;
    for (std::size_t i = 0; i < s.carved; ++i) {
      const auto* const b = reinterpret_cast<const block*>(s.block_begin() + i * size);
      const bool is_written = !links::is_whole(b) || !zero_memory::is_zero(reinterpret_cast<const std::byte*>(b + 1),
                                                                           size - block_seal::bytes - sizeof(block));
      if (is_written) [[unlikely]]
        found = written(b);
    }
  }

  /// A span for this thread to refill from, with its owner bits at every page; null when the system
  /// has no memory.
  span* next_span(unsigned c, page_tag owner, pages& heap) noexcept {
    if (span* const s = next_listed(owner, heap)) return s;
    return new_span(c, owner, heap);
  }

  span* new_span(unsigned c, page_tag owner, pages& heap) noexcept {
    const std::size_t size = classes::of(c).size;
    const std::size_t bytes = classes::span_pages(c, figures_.outside * size) * heap_page;
    span* const s = heap.allocate_cut(c, bytes / heap_page);
    if (s == nullptr) return nullptr;
    figures_.span_bytes += s->bytes();
    s->capacity = static_cast<std::uint32_t>((s->pages - s->guard_pages) * heap_page / size);
    s->size_class = static_cast<std::uint8_t>(c);
    s->owner = owner;
    heap.map().set_all(s, tag_of(owner, c));
    if constexpr (R.hardening.sealed) clear_margins(s);
    return s;
  }

  /// What is left of a span before its first block and behind its last one is 0: a write there is
  /// seen (sealed_blocks.hpp).
  static void clear_margins(span* s) noexcept {
    if (s->zeroed) return;
    std::memset(s->start, 0, s->offset);
    std::byte* const end = s->block_begin() + s->capacity * std::size_t{classes::of(s->size_class).size};
    std::memset(end, 0, static_cast<std::size_t>(s->usable_end() - end));
  }

  /// Replaces an attached span that has only fresh blocks by another span of this thread with
  /// blocks that came back: those pages are resident.
  void prefer_returned(page_tag owner, span*& attached, pages& heap, section& here) noexcept {
    span* const s = near_front([owner](const span* t) { return t->owner == owner && t->free != nullptr; });
    if (s == nullptr) return;
    unlist(s);
    list(attached);
    if (attached->live == 0) keep_or_retire(attached, heap, here);
    attached = s;
  }

  /// A listed span, one that this thread refilled from before if there is one near the front.
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

  /// The first of the first few listed spans for which the predicate is true, or null.
  template <class Predicate>
  span* near_front(Predicate is) const noexcept {
    constexpr int tries = 8;
    span* s = listed_.front();
    for (int i = 0; s != nullptr && i < tries; ++i, s = s->next) {
      if (is(s)) return s;
    }
    return nullptr;
  }

  lock_type lock_;
  span_list listed_;
  class_figures figures_;
  std::uint64_t empty_bytes_ = 0;  ///< of listed spans with live == 0
};

}  // namespace heapwright
