// Mixed spans: blocks of many sizes side by side, best fit, free neighbours merged. What a recipe
// asks for by spans.mixed_up_to.
//
// Problem     a span of one size class keeps its pages as long as one block lives. A program that
//             frees half of its blocks at random, and then asks for longer ones, has both in
//             memory.
// How         a mixed span has blocks of all classes up to a limit. A block that comes back merges
//             with its free neighbours, and the smallest free chunk that is long enough serves the
//             next request (Knuth, "The Art of Computer Programming" 1, 2.5; bins as in Masmano et
//             al., "TLSF").
// Front       thread caches keep these blocks by class as they keep others: allocation differs from
//             that of other classes in the refill alone. A free has to ask the span for the size:
//             its pages have mixed_tag, which no thread owns, so that it takes the slow way.
//
// A span is cut into chunks: blocks that are outside, and free chunks (mixed_bits.hpp). A free
// chunk has the links of its bin in its first grain.
//
// One free chunk, the tail, is in no bin: where no other is long enough, blocks are cut off from
// its beginning, one by one and without a link. It is most of the newest span while a program
// grows.
//
// Invariants  no two free chunks are neighbours; each but the tail is in the bin of its length; a
//             span without blocks is the tail's.
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
      const std::size_t bin = nonempty_.first_from(bin_of(length));
      // What is allocated together is often freed together: it had better be neighbours. So blocks
      // of one class are not cut off in a row, and more than one come only from chunks of their
      // length.
      if (n > 0 && bin != bin_of(length)) break;
      std::byte* const p = bin != nonempty_.none ? take(bins_[bin], length, heap) : cut_tail(length, heap, in.of_first);
      if (p == nullptr) break;
      first = new (p) block{first};
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

  /// Gives the span without blocks to the page heap, if there is one.
  void trim(pages& heap, class_figures& of_first) noexcept {
    holding guard(lock_);
    if (tail_.of != nullptr && tail_.of->live == 0) retire(std::exchange(tail_, {}).of, heap, of_first);
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

  [[nodiscard]] static std::byte* at(const span& s, std::size_t g) noexcept { return s.start + g * grain; }

  // --- free chunks

  void insert(const span& s, std::size_t g, std::size_t length) noexcept {
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

  /// A block from the beginning of a free chunk; the rest stays free.
  [[nodiscard]] std::byte* take(chunk* c, std::size_t length, pages& heap) noexcept {
    span& s = heap.map().known_span_at(c);
    const std::size_t g = mixed_block::grain_of(s, c), end = s.bits->end_of(g);
    remove(c, end - g);
    if (g + length < end) insert(s, g + length, end - g - length);
    return handed_out(s, g, length);
  }

  /// The same from the tail; from that of a new span where it is too short. Null when the system
  /// has no memory.
  [[nodiscard]] std::byte* cut_tail(std::size_t length, pages& heap, class_figures& of_first) noexcept {
    if (tail_.end - tail_.begin < length && !grow(heap, of_first)) return nullptr;
    return handed_out(*tail_.of, std::exchange(tail_.begin, tail_.begin + length), length);
  }

  [[nodiscard]] static std::byte* handed_out(span& s, std::size_t g, std::size_t length) noexcept {
    if (g + length < mixed_bits::grains) s.bits->set_begins(g + length, true);
    s.bits->set_outside(g, true);
    ++s.live;
    return at(s, g);
  }

  void put(block* b, pages& heap, class_figures& of_first) noexcept {
    span& s = heap.map().known_span_at(b);
    std::size_t g = mixed_block::grain_of(s, b), end = s.bits->end_of(g);
    s.bits->set_outside(g, false);
    bool joins_tail = false;
    if (end < mixed_bits::grains && !s.bits->is_outside(end)) {
      const std::size_t end_of_next = s.bits->end_of(end);
      joins_tail = is_tail(s, end);
      if (!joins_tail) remove(chunk_at(s, end), end_of_next - end);
      s.bits->set_begins(end, false);
      end = end_of_next;
    }
    if (g > 0) {
      if (const std::size_t before = s.bits->before(g); !s.bits->is_outside(before)) {
        const bool is_in_tail = is_tail(s, before);
        joins_tail |= is_in_tail;
        if (!is_in_tail) remove(chunk_at(s, before), g - before);
        s.bits->set_begins(g, false);
        g = before;
      }
    }
    const bool is_empty = --s.live == 0;
    if (is_empty && tail_.of != &s)
      retire(&s, heap, of_first);
    else if (is_empty || joins_tail)
      tail_ = {&s, g, end};
    else
      insert(s, g, end - g);
  }

  [[nodiscard]] bool is_tail(const span& s, std::size_t g) const noexcept {
    return tail_.of == &s && tail_.begin == g && g < tail_.end;
  }

  [[nodiscard]] static chunk* chunk_at(const span& s, std::size_t g) noexcept {
    return std::launder(reinterpret_cast<chunk*>(at(s, g)));
  }

  // --- spans

  /// The tail becomes all of a new span; what is left of it goes into a bin. False: the system has
  /// no memory.
  [[nodiscard]] bool grow(pages& heap, class_figures& of_first) noexcept {
    mixed_bits* const record = unused_ != nullptr ? unused_ : new_record(heap);
    if (record == nullptr) return false;
    span* const s = heap.allocate(mixed_bits::span_bytes / heap_page, heap_page, span_state::mixed);
    if (s == nullptr) {
      unused_ = record;
      return false;
    }
    unused_ = std::exchange(record->next_unused, nullptr);
    record->set_begins(0, true);
    s->bits = record;
    of_first.span_bytes += s->bytes();
    heap.map().set_all(s, mixed_tag);
    if (tail_.begin < tail_.end) insert(*tail_.of, tail_.begin, tail_.end - tail_.begin);
    tail_ = {s, 0, mixed_bits::grains};
    return true;
  }

  [[nodiscard]] static mixed_bits* new_record(pages& heap) noexcept {
    void* const p = heap.allocate_metadata(sizeof(mixed_bits));
    return p == nullptr ? nullptr : new (p) mixed_bits;
  }

  /// A span without blocks, whose chunk is in no bin.
  void retire(span* s, pages& heap, class_figures& of_first) noexcept {
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
  struct {
    span* of = nullptr;
    std::size_t begin = 0, end = 0;  ///< grains
  } tail_;
  mixed_bits* unused_ = nullptr;
};

}  // namespace heapwright
