// Equal blocks, tracked by a bitmap apart from them: a free block is never touched, and a pointer
// that is freed is known to be a live block or not, in every build.
//
//   slab, aligned to its size:  [ header | bitmap | block | block | ... ]   bit per block, 1: free
//
// States of a slab   current     allocations come from it, from the word `word_` of its bitmap; at
//                                most one slab
//                    with space  some blocks are free, or all of them (empty); waits to become
//                                current
//                    full        no block is free; out of the search until one is
// Invariants, L being the number of live blocks of a slab:
//   current      header.frees_left + taken_ == L, modulo 2^64; header.frees_left > 0
//   with space   header.frees_left == L       0: empty, and counted in empty_
//   full         header.frees_left == 1, header.search_from == nowhere
//   empty_ and the current slab, if that one is empty, are at most keep_empty
//
// So allocate counts in the allocator, deallocate in the slab, and a free looks closer only when
// frees_left reaches zero: when the slab became empty, when it was full, or when it is time to add
// what was taken since.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/exact_divisor.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/core/poison.hpp>
#include <heapwright/source/slab_memory.hpp>
#include <heapwright/source/upstream.hpp>

namespace heapwright {

/// What the slabs are like.
struct slab_plan {
  /// Per slab; rounded up to a power of two, and further if fewer than eight blocks would fit.
  std::size_t bytes = 16 * KiB;
  /// Empty slabs that are kept. One more goes back to the source at once; with SIZE_MAX none does
  /// before a trim.
  std::size_t keep_empty = 8;
};

/// Bytes, but for the slabs.
struct slab_stats {
  std::size_t in_use;  ///< live blocks at their rounded size
  std::size_t held;    ///< all slabs with their headers
  std::size_t slabs;   ///< how many there are
};

/// Blocks of one layout. Not thread-safe. Null when the source has no more. Neither copied nor
/// moved.
///
/// Next-fit: the search for a free block goes on where the last one ended, 64 blocks at a time. A
/// slab's blocks are not written to, nor are their pages touched, before they are used. The idea of
/// slabs is Bonwick's (The Slab Allocator, USENIX 1994).
///
/// A double free, and a pointer that is not the beginning of a block, end the process with a
/// message in every build. To recognise a pointer that is not from here at all, its slab's header
/// is read where it would be: where nothing is mapped, that faults. Checked builds look the slab up
/// first, in O(slabs), and name every such pointer.
template <allocator Source = slab_memory>
class slab {
 public:
  /// For blocks of this layout, whose size is rounded up to a multiple of its alignment; both below
  /// 2^48. The source is asked for ranges aligned to their size, which are shorter by
  /// Source::header_bytes if it has that.
  explicit slab(layout block, slab_plan plan = {}, Source source = {}) noexcept
      : size_(align_up(std::max<std::size_t>(block.size, 1), block.alignment)),
        mask_(~(bytes_for(plan.bytes, size_, block.alignment) - 1)),
        blocks_in_(size_),
        alignment_(block.alignment),
        keep_empty_(plan.keep_empty),
        source_(source) {
    const std::size_t at_most = (range().size - sizeof(header) - 2 * margin) / size_;
    first_offset_ = first_offset(at_most, alignment_);
    capacity_ = std::min(at_most, (range().size - first_offset_ - margin) / size_);
  }

  ~slab() {
    for_each([this](header* s) { release(s); });
  }

  slab(const slab&) = delete;
  slab& operator=(const slab&) = delete;

  /// A block. Null when the source has no more. O(1), but for a new slab and for the search in
  /// words of the bitmap that have no free block left.
  [[nodiscard]] void* allocate() noexcept {
    const std::uint64_t free = *word_;
    if (free == 0) [[unlikely]]
      return allocate_slow();
    *word_ = free & (free - 1);
    ++taken_;
    void* const p = reinterpret_cast<void*>(group_ + static_cast<unsigned>(std::countr_zero(free)) * size_);
    unpoison(p, size_);
    return p;
  }

  /// Null does nothing. O(1), but for giving back a slab; O(slabs) in checked builds.
  void deallocate(void* p) noexcept {
    if (p == nullptr) [[unlikely]]
      return;
    if constexpr (checks_callers) {
      if (!owns(p)) die_foreign(p);
    }
    header* const s = slab_of(p);
    const std::size_t index = index_of(p, s);
    if (index >= capacity_) [[unlikely]]
      die_foreign(p);
    std::uint64_t& word = bitmap_of(s)[index / 64];
    const std::uint64_t with_block = word | std::uint64_t{1} << index % 64;
    if (with_block == word) [[unlikely]]
      die("double free", p, "(the block is free already)");
    word = with_block;
    poison(p, size_);
    if (--s->frees_left == 0) [[unlikely]]
      settle(s, index / 64);
  }

  /// Null for a layout that does not fit the blocks.
  [[nodiscard]] void* allocate(layout l) noexcept { return fits(l) ? allocate() : nullptr; }

  /// Null does nothing. O(1), but for giving back a slab; O(slabs) in checked builds.
  void deallocate(void* p, layout l) noexcept {
    if constexpr (checks_callers) {
      if (p != nullptr && !fits(l)) die("free with a wrong layout", p, "(larger than the blocks of this slab)");
    }
    deallocate(p);
  }

  /// Whether the blocks are large enough, and aligned enough, for this layout.
  [[nodiscard]] bool fits(layout l) const noexcept { return l.size <= size_ && l.alignment <= alignment_; }

  /// Whether p points into one of the slabs, into a live block or not: a double free is to be named
  /// here. Any pointer value will do. O(slabs).
  [[nodiscard]] bool owns(const void* p) const noexcept {
    bool found = false;
    for_each([&, of = slab_of(p)](const header* s) { found |= s == of; });
    return found;
  }

  /// Bytes of a block: the layout's size, rounded up to a multiple of its alignment.
  [[nodiscard]] std::size_t usable_size(const void*) const noexcept { return size_; }

  /// Frees all blocks. At most keep_empty slabs stay. O(slabs).
  void reset() noexcept {
    leave();
    while (full_.next != &full_) move(full_.next, &with_space_);
    empty_ = 0;
    for_each([this](header* s) {
      if (empty_ < keep_empty_) {
        free_all(s);
        ++empty_;
      } else {
        release(s);
      }
    });
  }

  /// Gives all empty slabs back to the source; returns the bytes. O(slabs).
  std::size_t trim() noexcept {
    std::size_t released = 0;
    for_each([&](header* s) {
      if (live_in(s) > 0) return;
      if (s == current_) leave();
      release(s);
      released += range().size;
    });
    empty_ = 0;
    return released;
  }

  /// O(slabs).
  [[nodiscard]] slab_stats stats() const noexcept {
    slab_stats all{};
    for_each([&](const header* s) {
      all.in_use += live_in(s) * size_;
      all.held += range().size;
      ++all.slabs;
    });
    return all;
  }

 private:
  struct links {
    links* previous;
    links* next;
  };

  struct header : links {
    std::uintptr_t key;       ///< address of the first block ^ tag_; 0 when the slab has gone back
    std::size_t frees_left;   ///< until one has to look closer
    std::size_t search_from;  ///< word of the bitmap
  };

  static constexpr std::size_t nowhere = SIZE_MAX;

  /// Headers are read all the time, so they are not poisoned themselves, but have poisoned bytes on
  /// both sides.
  static constexpr std::size_t margin = poisons ? 64 : 0;

  /// Left to the source at the end of a slab.
  static constexpr std::size_t spare = [] {
    if constexpr (requires { Source::header_bytes; }) return std::size_t{Source::header_bytes};
    return std::size_t{0};
  }();

  [[nodiscard]] static std::size_t first_offset(std::size_t blocks, std::size_t alignment) noexcept {
    return align_up(sizeof(header) + divide_up(blocks, 64) * 8 + margin, alignment);
  }

  [[nodiscard]] static std::size_t bytes_for(std::size_t wanted, std::size_t size, std::size_t alignment) noexcept {
    return std::bit_ceil(std::max(wanted, first_offset(8, alignment) + 8 * size + margin + spare));
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return ~mask_ + 1; }
  [[nodiscard]] layout range() const noexcept { return {bytes() - spare, bytes()}; }  ///< what the source is asked for
  [[nodiscard]] std::size_t words() const noexcept { return divide_up(capacity_, 64); }

  [[nodiscard]] header* slab_of(const void* p) const noexcept {
    return reinterpret_cast<header*>(address_of(p) & mask_);
  }

  [[nodiscard]] static std::uint64_t* bitmap_of(header* s) noexcept { return reinterpret_cast<std::uint64_t*>(s + 1); }

  /// Of the block that begins at p; at least capacity_ if none does. One comparison finds a p
  /// between blocks, in front of them or behind them, and memory of somebody else, where no key
  /// lies that gives an address below p together with our tag.
  [[nodiscard]] std::size_t index_of(const void* p, const header* s) const noexcept {
    return blocks_in_.quotient(address_of(p) - (s->key ^ tag_));
  }

  [[nodiscard]] std::size_t live_in(const header* s) const noexcept {
    if (s->search_from == nowhere) return capacity_;
    return s == current_ ? s->frees_left + taken_ : s->frees_left;
  }

  [[nodiscard, gnu::noinline]] void* allocate_slow() noexcept {
    if (current_ != nullptr && !search(static_cast<std::size_t>(word_ - bitmap_of(current_)))) retire();
    if (current_ == nullptr) {
      if (with_space_.next == &with_space_ && !grow()) return nullptr;
      enter(static_cast<header*>(with_space_.next));
    }
    return allocate();
  }

  /// Goes on with the next word of the current slab that has a free block, from `start` and around.
  bool search(std::size_t start) noexcept {
    std::uint64_t* const bitmap = bitmap_of(current_);
    const std::size_t end = words();
    std::size_t at = start;
    while (bitmap[at] == 0) {
      at = at + 1 == end ? 0 : at + 1;
      if (at == start) return false;
    }
    word_ = bitmap + at;
    group_ = address_of(current_) + first_offset_ + at * 64 * size_;
    return true;
  }

  void enter(header* s) noexcept {
    current_ = s;
    taken_ = 0;
    if (s->frees_left == 0) {
      --empty_;
      expect_first_free();
    }
    search(s->search_from);
  }

  /// The current slab is empty. frees_left stays above zero, so that one comparison with zero will
  /// do on the way.
  void expect_first_free() noexcept {
    current_->frees_left = 1;
    taken_ = 0 - std::size_t{1};
  }

  void leave() noexcept {
    current_ = nullptr;
    word_ = &no_word_;
  }

  /// The current slab is full.
  void retire() noexcept {
    current_->frees_left = 1;
    current_->search_from = nowhere;
    move(current_, &full_);
    leave();
  }

  bool grow() noexcept {
    void* const fresh = source_.allocate(range());
    if (fresh == nullptr) return false;
    auto* const s = new (fresh) header{};
    s->key = (address_of(s) + first_offset_) ^ tag_;
    s->previous = s->next = s;
    move(s, with_space_.next);
    free_all(s);
    ++empty_;
    return true;
  }

  void free_all(header* s) noexcept {
    std::uint64_t* const bitmap = bitmap_of(s);
    std::fill_n(bitmap, words(), ~std::uint64_t{0});
    if (capacity_ % 64 != 0) bitmap[words() - 1] = (std::uint64_t{1} << capacity_ % 64) - 1;
    s->frees_left = 0;
    s->search_from = 0;
    poison(bitmap + words(), range().size - sizeof(header) - words() * 8);
  }

  /// frees_left has come to its end by the free of a block in this word.
  [[gnu::noinline]] void settle(header* s, std::size_t word) noexcept {
    if (s == current_) {
      s->frees_left += taken_;
      taken_ = 0;
    } else if (s->search_from == nowhere) {
      s->frees_left = capacity_ - 1;
      s->search_from = word;
      move(s, with_space_.next);
    }
    invariant(s->frees_left < capacity_, "slab: more blocks in use than it has");
    if (s->frees_left == 0) keep_or_release(s);
  }

  void keep_or_release(header* s) noexcept {
    const bool other_is_empty = current_ != nullptr && s != current_ && live_in(current_) == 0;
    if (empty_ + (other_is_empty ? 1 : 0) >= keep_empty_) {
      if (s == current_) leave();
      release(s);
    } else if (s == current_) {
      expect_first_free();
    } else {
      // Last in the line: while others have space, this one stays empty.
      move(s, &with_space_);
      ++empty_;
    }
  }

  void release(header* s) noexcept {
    s->previous->next = s->next;
    s->next->previous = s->previous;
    unpoison(s, range().size);
    // Volatile, or the compiler drops the store in front of free: the key must not be found in
    // memory that is somebody else's.
    const_cast<volatile std::uintptr_t&>(s->key) = 0;
    source_.deallocate(s, range());
  }

  /// Takes s out of the ring it is in, and puts it in front of `before` into the ring of that.
  static void move(links* s, links* before) noexcept {
    s->previous->next = s->next;
    s->next->previous = s->previous;
    s->previous = before->previous;
    s->next = before;
    s->previous->next = before->previous = s;
  }

  /// f may take the slab that it is given out of its ring.
  template <class F>
  void for_each(F f) const noexcept {
    for (const links* const ring : {&with_space_, &full_}) {
      for (links* s = ring->next; s != ring;) {
        links* const next = s->next;
        f(static_cast<header*>(s));
        s = next;
      }
    }
  }

  std::uint64_t* word_ = &no_word_;
  std::uintptr_t group_ = 0;  ///< the block of the lowest bit of *word_
  std::size_t size_;
  std::size_t taken_ = 0;
  std::uintptr_t mask_;
  std::uintptr_t tag_ = fibonacci_hash(address_of(this)) | std::uintptr_t{1} << 63;  ///< not an address of a program
  exact_divisor blocks_in_;
  std::size_t capacity_;
  header* current_ = nullptr;  ///< in the ring with_space_
  links with_space_{&with_space_, &with_space_};
  links full_{&full_, &full_};
  std::size_t empty_ = 0;
  std::size_t alignment_;
  std::size_t first_offset_;
  std::size_t keep_empty_;
  std::uint64_t no_word_ = 0;  ///< word_ when there is no current slab
  [[no_unique_address]] Source source_;

  [[noreturn, gnu::cold, gnu::noinline]] static void die_foreign(const void* p) noexcept {
    die("free of a foreign pointer", p, "(not the beginning of a block of this slab)");
  }
};

}  // namespace heapwright
