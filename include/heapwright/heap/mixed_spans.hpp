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
//             that of other classes in the refill alone. A free has to ask the bits for the size:
//             pages of mixed spans have mixed_tag, which no thread owns, so that it leaves the fast
//             path.
//
// A span is cut into chunks: blocks that are outside, and free chunks (mixed_bits.hpp). A free
// chunk has the links of its bin in its first grain. So an address alone leads to all there is to
// know of a chunk, and the record of the span is not read.
//
// Where no chunk is long enough, blocks are cut off the thread's strip (mixed_strip.hpp): one by
// one, of all sizes, so that blocks that are allocated together are neighbours. Strips grow from
// the tail, the rest of the newest span, which looks like a block that is outside.
//
// Invariants  no two free chunks are neighbours; each is in the bin of its length; a span that is
//             one free chunk goes back to the page heap; a block whose bits are in a thread's own
//             words waits, and is outside until then.
// Locks       one for all, but for what a thread cuts off its strip.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <heapwright/core/bin_bitmap.hpp>
#include <heapwright/heap/block_links.hpp>
#include <heapwright/heap/mixed_bits.hpp>
#include <heapwright/heap/mixed_strip.hpp>
#include <heapwright/heap/page_heap.hpp>

namespace heapwright {

/// All zero is empty. Every function takes the page heap, which is the same in each call.
template <const recipe& R, platform OS>
class mixed_spans {
  friend struct heap_describer;

  using classes = class_table<R>;
  using pages = page_heap<R, OS>;
  using links = block_links<R>;
  static constexpr std::size_t grain = mixed_bits::grain;

 public:
  using lock_type = heap_lock<R, OS>;

  /// Up to `wanted` blocks of class c, linked: free chunks of their length, or else one block of
  /// the smallest longer chunk, or of the strip. `figures(c)` are those of a class. Null when the
  /// system has no memory.
  template <class Figures>
  [[nodiscard, gnu::noinline]] block* refill(unsigned c, std::uint32_t wanted, mixed_strip& strip, pages& heap,
                                             Figures figures) noexcept {
    holding guard(lock_);
    const std::size_t bytes = classes::of(c).size;
    const unsigned own_bin = bin_of(bytes / grain);
    const std::size_t bin = nonempty_.first_from(own_bin);
    // What is allocated together is often freed together: it had better be neighbours. So blocks of
    // one class are not cut off in a row, and more than one come only from chunks of their length.
    if (bin == own_bin) return take_all(c, wanted, heap, figures);
    void* p = nullptr;
    if (bin != nonempty_.none) {
      p = cut(bins_[bin], bytes / grain, heap);
      count(figures, c, 1);
    } else if (bytes <= strip.left() || extend(strip, heap, figures)) {
      p = strip.cut(bytes);
    }
    return p == nullptr ? nullptr : links::make(p, nullptr);
  }

  /// Takes back `n` blocks of class c, the first of a list. Returns the rest of the list.
  template <class Figures>
  [[gnu::noinline]] block* flush(unsigned c, block* first, std::uint32_t n, pages& heap, Figures figures) noexcept {
    holding guard(lock_);
    std::int64_t back = 0;
    for (; n > 0; --n) {
      block* const following = links::next(first);
      back += put_unless_owned(first, heap, figures);
      first = following;
    }
    count(figures, c, -back);
    return first;
  }

  /// Takes back what is left of a strip, which is empty then.
  template <class Figures>
  void take_back(mixed_strip& strip, pages& heap, Figures figures) noexcept {
    if (strip.bits_ == nullptr) return;
    holding guard(lock_);
    leave(strip, heap, figures);
  }

  /// Gives the span without blocks to the page heap, if there is one.
  template <class Figures>
  void trim(pages& heap, Figures figures) noexcept {
    holding guard(lock_);
    if (tail_.begin != tail_.end) put(std::exchange(tail_, {}).begin, heap, figures);
  }

  /// Whether a free chunk may be as long as a block of class c. May be out of date.
  [[nodiscard]] bool has_chunk_for(unsigned c) const noexcept {
    return longest_.load(std::memory_order_relaxed) >= classes::of(c).size / grain;
  }

  /// Blocks of a class that are outside.
  [[nodiscard]] std::uint64_t outside(const class_figures& of_class) noexcept {
    holding guard(lock_);
    return of_class.outside;
  }

  /// Calls f(block) for those that wait. The caller holds the lock.
  template <class F>
  void for_each_waiting_held(F f) const noexcept {
    for (const block* b = waiting_; b != nullptr; b = links::next(b)) f(b);
  }

  /// Where the tail begins, or null. The caller holds the lock.
  [[nodiscard]] const std::byte* tail_held() const noexcept { return tail_.begin != tail_.end ? tail_.begin : nullptr; }

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

  // --- free chunks

  void insert(std::byte* p, std::size_t length) noexcept {
    const unsigned b = bin_of(length);
    chunk* const first = bins_[b];
    auto* const c = new (p) chunk{first, nullptr};
    bins_[b] = c;
    if (first != nullptr) {
      first->previous = c;
      return;
    }
    nonempty_.insert(b);
    if (b >= longest_.load(std::memory_order_relaxed)) longest_.store(b + 1, std::memory_order_relaxed);
  }

  void remove(std::byte* p, std::size_t length) noexcept {
    const auto* const c = std::launder(reinterpret_cast<chunk*>(p));
    if (c->next != nullptr) c->next->previous = c->previous;
    if (c->previous != nullptr)
      c->previous->next = c->next;
    else
      set_first(bin_of(length), c->next);
  }

  void set_first(unsigned b, chunk* c) noexcept {
    bins_[b] = c;
    if (c != nullptr) return;
    nonempty_.erase(b);
    if (b + 1 < longest_.load(std::memory_order_relaxed)) return;
    const std::size_t last = nonempty_.last_before(bins);
    longest_.store(last == nonempty_.none ? 0 : static_cast<std::uint32_t>(last) + 1, std::memory_order_relaxed);
  }

  /// Up to `wanted` chunks of the length of class c, of which there is one.
  template <class Figures>
  [[nodiscard]] block* take_all(unsigned c, std::uint32_t wanted, pages& heap, Figures figures) noexcept {
    const unsigned bin = bin_of(classes::of(c).size / grain);
    block* first = nullptr;
    std::uint32_t n = 0;
    chunk* next = bins_[bin];
    for (; n < wanted && next != nullptr; ++n) {
      void* const p = std::exchange(next, next->next);
      heap.map().bits_at(p).set_outside(mixed_bits::grain_of(p));
      first = links::make(p, first);
    }
    set_first(bin, next);
    if (next != nullptr) next->previous = nullptr;
    count(figures, c, n);
    return first;
  }

  /// A block from the beginning of a chunk that is longer; the rest stays free.
  [[nodiscard]] std::byte* cut(chunk* from, std::size_t length, pages& heap) noexcept {
    auto* const p = reinterpret_cast<std::byte*>(from);
    mixed_bits& bits = heap.map().bits_at(p);
    const std::size_t g = mixed_bits::grain_of(p), all = bits.end_of(g) - g;
    remove(p, all);
    if (all > length) {
      bits.set_begins(g + length);
      insert(p + length * grain, all - length);
    }
    bits.set_outside(g);
    return p;
  }

  // --- blocks that come back

  /// A block joins its free neighbours.
  template <class Figures>
  void put(void* block, pages& heap, Figures figures) noexcept {
    auto* p = static_cast<std::byte*>(block);
    mixed_bits& bits = heap.map().bits_at(p);
    const std::size_t g = mixed_bits::grain_of(p), end = bits.end_of(g);
    std::size_t length = end - g;
    bits.clear_outside(g);
    if (end < mixed_bits::grains && !bits.is_outside(end)) {
      const std::size_t length_of_next = bits.end_of(end) - end;
      remove(p + length * grain, length_of_next);
      bits.clear_begins(end);
      length += length_of_next;
    }
    if (const std::size_t before = g > 0 ? bits.before(g) : g; g > 0 && !bits.is_outside(before)) {
      p -= (g - before) * grain;
      remove(p, g - before);
      bits.clear_begins(g);
      length += g - before;
    }
    if (length == mixed_bits::grains) [[unlikely]]
      retire(p, heap, figures);
    else
      insert(p, length);
  }

  /// False: bits of the block are a thread's own, and it waits. The last are as well, if the first
  /// are, or alone: where a block begins before a word that a thread has kept.
  template <class Figures>
  bool put_unless_owned(block* b, pages& heap, Figures figures) noexcept {
    const mixed_bits& bits = heap.map().bits_at(b);
    if (bits.is_owned(bits.end_of(mixed_bits::grain_of(b)) - 1)) [[unlikely]] {
      links::set_next(b, waiting_);
      waiting_ = b;
      return false;
    }
    put(b, heap, figures);
    return true;
  }

  template <class Figures>
  void put_waiting(pages& heap, Figures figures) noexcept {
    block* b = std::exchange(waiting_, nullptr);
    while (b != nullptr) {
      block* const following = links::next(b);
      const unsigned c = classes::index(heap.map().bits_at(b).size_at(b));
      if (put_unless_owned(b, heap, figures)) count(figures, c, -1);
      b = following;
    }
  }

  // --- strips

  /// The strip gets a step longer; or becomes the next step of another place, where what follows it
  /// is not free. False: the system has no memory.
  template <class Figures>
  [[nodiscard]] bool extend(mixed_strip& strip, pages& heap, Figures figures) noexcept {
    if (tail_.begin == tail_.end && !grow(heap, figures)) return false;
    std::byte* const step = tail_.begin;
    const std::size_t first = mixed_bits::grain_of(step);
    if (strip.end_ != step || first == 0) {
      leave(strip, heap, figures);
      strip.begin_ = strip.counted_ = strip.owned_ = step;
      strip.bits_ = &heap.map().bits_at(step);
    } else {
      count_cut(strip, figures);
      std::byte* const owned = mixed_bits::word_begin(strip.begin_);
      strip.bits_->set_owned(std::exchange(strip.owned_, owned), owned, false);
      if (strip.begin_ != step) {
        strip.bits_->clear_begins(first);
        strip.bits_->clear_outside(first);
      }
    }
    strip.end_ = tail_.begin = step + mixed_strip::step_bytes;
    strip.bits_->set_owned(step, strip.end_, true);
    if (tail_.begin != tail_.end) strip.bits_->begin_outside(mixed_bits::grain_of(tail_.begin));
    if (waiting_ != nullptr) put_waiting(heap, figures);
    return true;
  }

  /// The strip's words are nobody's, and what is left of it is a free chunk.
  template <class Figures>
  void leave(mixed_strip& strip, pages& heap, Figures figures) noexcept {
    if (strip.bits_ == nullptr) return;
    count_cut(strip, figures);
    const mixed_strip left = std::exchange(strip, {});
    left.bits_->set_owned(left.owned_, left.end_, false);
    if (left.begin_ != left.end_) put(left.begin_, heap, figures);
    if (waiting_ != nullptr) put_waiting(heap, figures);
  }

  /// Blocks that have been cut off a strip since it was last here come into the figures.
  template <class Figures>
  void count_cut(mixed_strip& strip, Figures figures) noexcept {
    figures(classes::mixed_begin).span_bytes -= static_cast<std::size_t>(strip.begin_ - strip.counted_);
    while (strip.counted_ != strip.begin_) {
      const std::size_t bytes = strip.bits_->size_at(strip.counted_);
      class_figures& of_class = figures(classes::index(bytes));
      ++of_class.outside;
      of_class.span_bytes += bytes;
      strip.counted_ += bytes;
    }
  }

  // --- spans

  /// The tail, which is empty, becomes all of a new span. False: the system has no memory.
  template <class Figures>
  [[nodiscard, gnu::noinline]] bool grow(pages& heap, Figures figures) noexcept {
    span* const s = heap.allocate(mixed_bits::span_bytes / heap_page, mixed_bits::span_bytes, span_state::mixed);
    if (s == nullptr) return false;
    figures(classes::mixed_begin).span_bytes += s->bytes();
    heap.map().set_all(s, mixed_tag);
    heap.map().bits_at(s->start).begin_outside(0);
    tail_ = {s->start, s->end()};
    return true;
  }

  /// Gives a span back that is one chunk, in no bin.
  template <class Figures>
  [[gnu::noinline]] void retire(std::byte* start, pages& heap, Figures figures) noexcept {
    span* const s = heap.map().span_at(start);
    heap.map().bits_at(start).clear_begins(0);
    figures(classes::mixed_begin).span_bytes -= s->bytes();
    heap.map().set_all_tags(s, 0);
    heap.release(s);
  }

  template <class Figures>
  static void count(Figures figures, unsigned c, std::int64_t blocks) noexcept {
    const auto bytes = static_cast<std::uint64_t>(blocks * static_cast<std::int64_t>(classes::of(c).size));
    figures(c).outside += static_cast<std::uint64_t>(blocks);
    figures(c).span_bytes += bytes;
    figures(classes::mixed_begin).span_bytes -= bytes;
  }

  lock_type lock_;
  std::atomic<std::uint32_t> longest_{0};  ///< one more than the last bin that is not empty; 0: all are
  bin_bitmap<bins> nonempty_{};
  chunk* bins_[bins]{};
  struct {
    std::byte *begin = nullptr, *end = nullptr;
  } tail_;
  block* waiting_ = nullptr;
};

}  // namespace heapwright
