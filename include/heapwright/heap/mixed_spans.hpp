// Mixed spans: blocks of many sizes side by side, best fit, free neighbours merged. What a recipe
// asks for by spans.mixed_up_to.
//
// Problem     a span of one size class keeps its pages as long as one block lives. A program that
//             frees half of its blocks at random, and then asks for longer ones, has both in memory.
// How         a mixed span has blocks of all classes up to a limit. A block that comes back merges
//             with its free neighbours, and the smallest free chunk that is long enough serves the
//             next request (Knuth, "The Art of Computer Programming" 1, 2.5; bins as in Masmano et
//             al., "TLSF").
// Front       thread caches keep these blocks by class as they keep others: allocation differs from
//             that of other classes in the refill alone. A free has to ask the span for the size:
//             its pages have mixed_tag, which no thread owns, so that it takes the slow way.
//
// A span is cut into chunks: blocks that are outside, and free chunks (mixed_bits.hpp). A free chunk
// has the links of its bin in its first grain.
//
// Invariants  no two free chunks are neighbours; each is in the bin of its length.
// Locks       one for all. But the bits of a block that is outside, and the bit behind it, do not
//             change: the thread that frees it reads them without the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <heapwright/core/bin_bitmap.hpp>
#include <heapwright/heap/mixed_bits.hpp>
#include <heapwright/heap/page_heap.hpp>

namespace heapwright {

/// All zero is empty. Every function takes the page heap, which is the same in each call.
template <const recipe& R, platform OS>
class mixed_spans {
  using classes = class_table<R>;
  using pages = page_heap<R, OS>;
  static constexpr std::size_t grain = mixed_bits::grain;

 public:
  using lock_type = heap_lock<R, OS>;

  /// Where blocks are counted: those of a class in its figures, what is free in the first class's.
  struct counted {
    class_figures& of_class;
    class_figures& of_first;
  };

  /// Up to `wanted` blocks of class c, linked; null when the system has no memory.
  [[nodiscard, gnu::noinline]] block* refill(unsigned c, std::uint32_t wanted, pages& heap, counted in) noexcept {
    holding guard(lock_);
    const std::size_t length = classes::of(c).size / grain;
    block* first = nullptr;
    std::uint32_t n = 0;
    for (; n < wanted; ++n) {
      chunk* best = find(length);
      if (best == nullptr && n == 0) best = grow(heap, in.of_first);
      // What is allocated together is often freed together: it had better be neighbours. So blocks of
      // one class are not cut off in a row.
      if (best == nullptr || (n > 0 && bins_[bin_of(length)] != best)) break;
      first = new (take(best, length, heap)) block{first};
    }
    count(in, c, n);
    return first;
  }

  /// Takes back `n` blocks of class c, the first of a list. Returns the rest of the list.
  [[gnu::noinline]] block* flush(unsigned c, block* first, std::uint32_t n, pages& heap, counted in) noexcept {
    holding guard(lock_);
    count(in, c, -std::int64_t{n});
    for (; n > 0; --n) {
      block* const following = first->next;
      put(first, heap, in.of_first);
      first = following;
    }
    return first;
  }

  /// Gives the empty span to the page heap.
  void trim(pages& heap, class_figures& of_first) noexcept {
    holding guard(lock_);
    if (empty_ != nullptr) retire(std::exchange(empty_, nullptr), heap, of_first);
  }

  /// Blocks of a class that are outside.
  [[nodiscard]] std::uint64_t outside(const class_figures& of_class) noexcept {
    holding guard(lock_);
    return of_class.outside;
  }

  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

 private:
  struct chunk {
    chunk* next;
    chunk* previous;
  };
  static_assert(sizeof(chunk) <= grain);

  // Bin i has chunks of i + 1 grains; from exact_bins on, eight bins per doubling.
  static constexpr unsigned exact_bins = 256;
  static constexpr unsigned bins = exact_bins + 8 * (floor_log2(mixed_bits::grains) - floor_log2(exact_bins)) + 1;

  static constexpr unsigned bin_of(std::size_t length) noexcept {
    if (length <= exact_bins) return static_cast<unsigned>(length - 1);
    const unsigned exponent = floor_log2(length);
    const auto step = static_cast<unsigned>(length >> (exponent - 3) & 7);
    return exact_bins + (exponent - floor_log2(exact_bins)) * 8 + step;
  }
  static_assert(bin_of(mixed_bits::grains) < bins);

  [[nodiscard]] static span* span_of(const void* p, pages& heap) noexcept { return heap.map().span_at(p); }
  [[nodiscard]] static std::byte* at(const span* s, std::size_t g) noexcept { return s->start + g * grain; }

  // --- free chunks

  void insert(span* s, std::size_t g, std::size_t length) noexcept {
    const unsigned b = bin_of(length);
    chunk* const first = bins_[b];
    auto* const c = new (at(s, g)) chunk{first, nullptr};
    if (first != nullptr) first->previous = c;
    bins_[b] = c;
    nonempty_.insert(b);
  }

  void remove(chunk* c, std::size_t length) noexcept {
    const unsigned b = bin_of(length);
    (c->previous != nullptr ? c->previous->next : bins_[b]) = c->next;
    if (c->next != nullptr) c->next->previous = c->previous;
    if (bins_[b] == nullptr) nonempty_.erase(b);
  }

  /// The smallest free chunk of at least this length, which has a bin of its own. Null: there is
  /// none.
  [[nodiscard]] chunk* find(std::size_t length) const noexcept {
    const std::size_t b = nonempty_.first_from(bin_of(length));
    return b == nonempty_.none ? nullptr : bins_[b];
  }

  /// A block from the beginning of a free chunk; the rest stays free.
  [[nodiscard]] std::byte* take(chunk* c, std::size_t length, pages& heap) noexcept {
    span* const s = span_of(c, heap);
    const std::size_t g = mixed_block::grain_of(*s, c), end = s->bits->end_of(g);
    if (s == empty_) empty_ = nullptr;
    remove(c, end - g);
    if (g + length < end) {
      s->bits->set_begins(g + length, true);
      insert(s, g + length, end - g - length);
    }
    s->bits->set_outside(g, true);
    ++s->live;
    return at(s, g);
  }

  void put(block* b, pages& heap, class_figures& of_first) noexcept {
    span* const s = span_of(b, heap);
    std::size_t g = mixed_block::grain_of(*s, b);
    std::size_t end = s->bits->end_of(g);
    s->bits->set_outside(g, false);
    if (end < mixed_bits::grains && !s->bits->is_outside(end)) {
      const std::size_t end_of_next = s->bits->end_of(end);
      remove(chunk_at(s, end), end_of_next - end);
      s->bits->set_begins(end, false);
      end = end_of_next;
    }
    if (g > 0) {
      if (const std::size_t before = s->bits->before(g); !s->bits->is_outside(before)) {
        remove(chunk_at(s, before), g - before);
        s->bits->set_begins(g, false);
        g = before;
      }
    }
    insert(s, g, end - g);
    if (--s->live == 0) keep_or_retire(s, heap, of_first);
  }

  [[nodiscard]] static chunk* chunk_at(const span* s, std::size_t g) noexcept {
    return std::launder(reinterpret_cast<chunk*>(at(s, g)));
  }

  // --- spans

  /// The chunk of a new span; null when the system has no memory.
  [[nodiscard]] chunk* grow(pages& heap, class_figures& of_first) noexcept {
    mixed_bits* const record = unused_ != nullptr ? unused_ : new_record(heap);
    if (record == nullptr) return nullptr;
    span* const s = heap.allocate(mixed_bits::span_bytes / heap_page, heap_page, span_state::mixed);
    if (s == nullptr) {
      unused_ = record;
      return nullptr;
    }
    unused_ = std::exchange(record->next_unused, nullptr);
    record->set_begins(0, true);
    record->set_begins(mixed_bits::grains, true);
    s->bits = record;
    of_first.span_bytes += s->bytes();
    heap.map().set_all(s, mixed_tag);
    insert(s, 0, mixed_bits::grains);
    return chunk_at(s, 0);
  }

  [[nodiscard]] static mixed_bits* new_record(pages& heap) noexcept {
    void* const p = heap.allocate_metadata(sizeof(mixed_bits));
    return p == nullptr ? nullptr : new (p) mixed_bits;
  }

  /// A span has become empty: one stays, so that a block that comes and goes takes none.
  void keep_or_retire(span* s, pages& heap, class_figures& of_first) noexcept {
    if (empty_ != nullptr) retire(empty_, heap, of_first);
    empty_ = s;
  }

  void retire(span* s, pages& heap, class_figures& of_first) noexcept {
    remove(chunk_at(s, 0), mixed_bits::grains);
    s->bits->set_begins(0, false);
    s->bits->next_unused = std::exchange(unused_, s->bits);
    s->bits = nullptr;
    of_first.span_bytes -= s->bytes();
    heap.map().set_all_tags(s, 0);
    heap.release(s);
  }

  static void count(counted in, unsigned c, std::int64_t blocks) noexcept {
    const auto bytes = static_cast<std::uint64_t>(blocks * static_cast<std::int64_t>(classes::of(c).size));
    in.of_class.outside += static_cast<std::uint64_t>(blocks);
    in.of_class.span_bytes += bytes;
    in.of_first.span_bytes -= bytes;
  }

  lock_type lock_;
  bin_bitmap<bins> nonempty_{};
  chunk* bins_[bins]{};
  span* empty_ = nullptr;
  mixed_bits* unused_ = nullptr;
};

}  // namespace heapwright
