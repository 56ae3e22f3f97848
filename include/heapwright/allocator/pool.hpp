// Blocks of one layout on a list that runs through the free blocks themselves: a pop is a load and
// a store, a push two stores.
//
//   chunk, aligned to its size:  [ header | block | block | ... ]
//
// Chunks are linked in the order in which they were taken from the source.
//
// States of a block   live        with the program
//                     free        on the list
//                     untouched   behind fresh_ in the chunk `carving_`, or in a chunk after it;
//                                 never written to since it was drawn
// States of a chunk   before carving_   no block is untouched
//                     carving_          some are
//                     behind it         all are: a reset has put it there
// Invariant: fresh_ <= fresh_end_; both lie in carving_, or there is no chunk.
//
// Untouched blocks go to the list a page's worth at a time, in the order of their addresses: what
// is built in one go lies in one row. A block finds its chunk by a mask. Only trim needs that: it
// counts the free blocks of each chunk, so that deallocate need not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/poison.hpp>
#include <heapwright/source/upstream.hpp>

namespace heapwright {

/// Bytes, but for the chunks.
struct pool_stats {
  std::size_t in_use;  ///< live blocks at their rounded size
  std::size_t held;    ///< all chunks with their headers
  std::size_t chunks;  ///< how many there are
};

/// Blocks of one layout. Not thread-safe. Null when the source has no more. Neither copied nor
/// moved.
///
/// Chunks go back to the source on trim, when all their blocks are free, and on destruction. So
/// pools that draw from a pool of chunks hand memory on to each other:
///
///     pool<> chunks({64 * KiB, 64 * KiB});
///     pool<upstream<pool<>>> trees(layout::of<tree>(), chunks);
template <allocator Source = upstream_malloc>
class pool {
 public:
  /// Bytes of a chunk unless the constructor is told otherwise.
  static constexpr std::size_t usual_chunk = 64 * KiB;

  /// For blocks of this layout. The source is asked for ranges of `chunk_bytes`, a power of two,
  /// aligned to their size; of more if fewer than eight blocks would fit.
  explicit pool(layout block, Source source = {}, std::size_t chunk_bytes = usual_chunk) noexcept
      : source_(source),
        alignment_(std::clamp(block.alignment, alignof(link), beyond_memory)),
        size_(align_up(std::clamp(block.size, smallest, beyond_memory), alignment_)),
        chunk_bytes_(std::max(chunk_bytes, std::bit_ceil(first_offset() + 8 * size_))) {}

  ~pool() {
    while (first_ != nullptr) {
      chunk* const c = first_;
      first_ = c->next;
      release(c);
    }
  }

  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  /// A block. Null when the source has no more. O(1), but for a new chunk and for blocks that were
  /// never used: those are linked a page's worth at a time.
  [[nodiscard]] void* allocate() noexcept {
    link* const b = free_;
    if (b == nullptr) [[unlikely]]
      return allocate_slow();
    reveal(b, sizeof(link*));
    free_ = b->next;
    unpoison(b, size_);
    if constexpr (checks_callers) b->mark = 0;
    return b;
  }

  /// Null does nothing. O(1).
  void deallocate(void* p) noexcept {
    if (p == nullptr) [[unlikely]]
      return;
    auto* const b = static_cast<link*>(p);
    if constexpr (checks_callers) check_freed(b);
    b->next = free_;
    free_ = b;
    poison(b, size_);
  }

  /// Null for a layout that does not fit the blocks.
  [[nodiscard]] void* allocate(layout l) noexcept { return fits(l) ? allocate() : nullptr; }

  /// Null does nothing. O(1).
  void deallocate(void* p, layout l) noexcept {
    if constexpr (checks_callers) {
      if (p != nullptr && !fits(l)) die("free with a wrong layout", p, "(larger than the blocks of this pool)");
    }
    deallocate(p);
  }

  /// Whether the blocks are large enough, and aligned enough, for this layout.
  [[nodiscard]] bool fits(layout l) const noexcept { return l.size <= size_ && l.alignment <= alignment_; }

  /// Whether p points into a chunk of this pool. O(chunks).
  [[nodiscard]] bool owns(const void* p) const noexcept {
    const std::uintptr_t of = align_down(address_of(p), chunk_bytes_);
    for (const chunk* c = first_; c != nullptr; c = c->next) {
      if (address_of(c) == of) return true;
    }
    return false;
  }

  /// Bytes of a block: the layout's size, rounded up to a multiple of its alignment and of 8. In
  /// checked builds at least 16.
  [[nodiscard]] std::size_t usable_size(const void*) const noexcept { return size_; }

  /// Frees all blocks; the chunks stay.
  void reset() noexcept {
    free_ = nullptr;
    enter(first_);
    for (chunk* c = first_; c != nullptr; c = c->next) poison(c + 1, chunk_bytes_ - sizeof(chunk));
  }

  /// Gives chunks whose blocks are all free back to the source; returns the bytes. O(free blocks +
  /// chunks).
  std::size_t trim() noexcept {
    count_idle();
    const std::size_t all = capacity();
    link** tail = &free_;
    for (link* b = free_; b != nullptr;) {
      link* const next = next_of(b);
      if (chunk_of(b)->idle < all) {
        set_next(tail, b);
        tail = &b->next;
      }
      b = next;
    }
    set_next(tail, nullptr);
    return release_idle(all);
  }

  /// O(free blocks + chunks).
  [[nodiscard]] pool_stats stats() const noexcept {
    count_idle();
    pool_stats s{};
    for (const chunk* c = first_; c != nullptr; c = c->next) {
      s.in_use += (capacity() - c->idle) * size_;
      s.held += chunk_bytes_;
      ++s.chunks;
    }
    return s;
  }

 private:
  struct link {
    link* next;
    std::uintptr_t mark;  ///< in checked builds: whether the block is free
  };

  struct chunk {
    chunk* next;
    std::size_t idle;  ///< trim: blocks that are not live
  };

  static constexpr std::size_t smallest = checks_callers ? sizeof(link) : sizeof(link*);
  static constexpr std::size_t beyond_memory = std::size_t{1} << 48;  // no source has a chunk of such blocks
  static constexpr std::size_t linked_at_once = 4 * KiB;

  [[nodiscard]] std::size_t first_offset() const noexcept { return align_up(sizeof(chunk), alignment_); }
  [[nodiscard]] std::size_t capacity() const noexcept { return (chunk_bytes_ - first_offset()) / size_; }

  [[nodiscard]] chunk* chunk_of(const void* p) const noexcept {
    return reinterpret_cast<chunk*>(align_down(address_of(p), chunk_bytes_));
  }

  /// Untouched blocks are taken from this chunk from now on.
  void enter(chunk* c) noexcept {
    carving_ = c;
    fresh_ = c == nullptr ? 0 : address_of(c) + first_offset();
    fresh_end_ = c == nullptr ? 0 : fresh_ + capacity() * size_;
  }

  [[nodiscard, gnu::noinline]] void* allocate_slow() noexcept {
    if (fresh_ == fresh_end_ && !next_chunk()) return nullptr;
    const std::size_t n = std::min((fresh_end_ - fresh_) / size_, std::max<std::size_t>(linked_at_once / size_, 1));
    // The list is empty here; it is filled from its end.
    for (std::size_t i = n; i-- > 0;) {
      auto* const b = reinterpret_cast<link*>(fresh_ + i * size_);
      unpoison(b, sizeof(link*));
      b->next = free_;
      poison(b, sizeof(link*));
      free_ = b;
    }
    fresh_ += n * size_;
    return allocate();
  }

  [[nodiscard]] bool next_chunk() noexcept {
    chunk* c = carving_ == nullptr ? nullptr : carving_->next;
    if (c == nullptr) {
      void* const fresh = source_.allocate({chunk_bytes_, chunk_bytes_});
      if (fresh == nullptr) return false;
      c = new (fresh) chunk{nullptr, 0};
      (carving_ == nullptr ? first_ : carving_->next) = c;
      poison(c + 1, chunk_bytes_ - sizeof(chunk));
    }
    enter(c);
    return true;
  }

  // Links of free blocks are poisoned with the rest of them.
  static link* next_of(link* b) noexcept {
    reveal(&b->next, sizeof(link*));
    link* const next = b->next;
    poison(&b->next, sizeof(link*));
    return next;
  }

  void set_next(link** where, link* b) noexcept {
    const bool in_block = where != &free_;
    if (in_block) unpoison(where, sizeof(link*));
    *where = b;
    if (in_block) poison(where, sizeof(link*));
  }

  void count_idle() const noexcept {
    bool untouched = false;
    for (chunk* c = first_; c != nullptr; c = c->next) {
      c->idle = untouched ? capacity() : 0;
      if (c == carving_) {
        c->idle = (fresh_end_ - fresh_) / size_;
        untouched = true;
      }
    }
    for (link* b = free_; b != nullptr; b = next_of(b)) ++chunk_of(b)->idle;
  }

  /// All chunks behind carving_ are idle, so that the last one that stays is the one to go on from.
  std::size_t release_idle(std::size_t all) noexcept {
    std::size_t released = 0;
    chunk* last = nullptr;
    for (chunk** at = &first_; *at != nullptr;) {
      chunk* const c = *at;
      if (c->idle < all) {
        last = c;
        at = &c->next;
        continue;
      }
      *at = c->next;
      if (c == carving_) fresh_ = fresh_end_ = 0;
      release(c);
      released += chunk_bytes_;
    }
    carving_ = last;
    return released;
  }

  void check_freed(link* b) const noexcept {
    if (!owns(b)) die("free of a foreign pointer", b, "(not a block of this pool)");
    const std::size_t offset = address_of(b) - address_of(chunk_of(b)) - first_offset();
    if (offset % size_ != 0 || offset >= capacity() * size_)
      die("free of a foreign pointer", b, "(not the beginning of a block)");
    reveal(b, sizeof(link));
    const std::uintptr_t mark = ~address_of(b);
    if (b->mark == mark) die("double free", b, "(the block is free already)");
    b->mark = mark;
  }

  void release(chunk* c) noexcept {
    unpoison(c, chunk_bytes_);
    source_.deallocate(c, {chunk_bytes_, chunk_bytes_});
  }

  link* free_ = nullptr;
  [[no_unique_address]] Source source_;
  std::size_t alignment_;
  std::size_t size_;
  std::size_t chunk_bytes_;
  chunk* first_ = nullptr;
  chunk* carving_ = nullptr;
  std::uintptr_t fresh_ = 0;
  std::uintptr_t fresh_end_ = 0;
};

}  // namespace heapwright
