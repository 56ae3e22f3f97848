// Arena: a cursor that moves up through memory. Allocation is one addition. Blocks are freed in the
// reverse order of their allocation, or all at once.
//
//   chunk:  [ header | block | block | padding | block | free ... ]
//                                              ^--- seam_
//                                            cursor_ ---^     ^--- end_
//
// A seam is a block in front of which lies something that its free must skip: padding for its
// alignment (arena_seam.hpp), or the header of a chunk.
//
// States      cursor_ is in               entered
//   empty     no memory: it is > end_     at first, without a buffer
//   buffer    the caller's buffer         at first, with one; when all that was drawn since is free
//   chunk     the newest chunk            when a request does not fit; a chunk has twice the bytes
//                                         of the one before
// Invariants  cursor_ is a multiple of `grain`. Chunks are linked from newest to oldest; older ones
//             are full up to `used`. seam_ is the latest seam below cursor_, or 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include <heapwright/allocator/arena_seam.hpp>
#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/poison.hpp>
#include <heapwright/source/upstream.hpp>

namespace heapwright {

/// Bytes, but for the chunks. Chunks count with their headers.
struct arena_stats {
  std::size_t in_use;  ///< blocks at their rounded sizes, with the padding between them
  std::size_t held;    ///< the buffer and all chunks
  std::size_t chunks;  ///< how many there are
};

/// What the free of a single block gives back.
enum class take_back : std::uint8_t {
  latest,   ///< the latest block, with its padding: frees in reverse order give everything back
  nothing,  ///< two comparisons less per free; for containers of nodes, which free in any order
};

/// Blocks of any layout. Not thread-safe. Null when the source has no more memory; the arena is
/// then as it was.
///
/// Frees in the exact reverse order of the allocations, of any sizes and alignments, end with 0
/// bytes in use. A block that is freed in another order stays in use until a reset or a rewind, and
/// so do the blocks allocated before it.
template <allocator Source = upstream_malloc, take_back TakeBack = take_back::latest>
class arena {
  struct chunk {
    chunk* older;
    std::size_t bytes;     ///< with this header
    std::uintptr_t used;   ///< where the cursor was when the next chunk came
    std::uintptr_t first;  ///< the block whose free leaves this chunk; 0: none does
    std::uintptr_t seam;   ///< the latest seam of the memory that was in use before this chunk
    bool is_marked;        ///< frees do not leave it: a mark may lead back into it

    [[nodiscard]] std::uintptr_t begin() const noexcept { return address_of(this + 1); }
    [[nodiscard]] std::uintptr_t end() const noexcept { return address_of(this) + bytes; }
  };

 public:
  static constexpr std::size_t grain = 8;  ///< sizes are rounded up to it; smaller alignments cost nothing
  static constexpr std::size_t largest_chunk =
      1 * MiB;  ///< chunks stop doubling here; larger ones serve one large block

  /// Draws its memory from `source`, at first `first_chunk` bytes.
  explicit arena(Source source = {}, std::size_t first_chunk = 4 * KiB) noexcept
      : source_(source), next_chunk_(std::max(first_chunk, 2 * sizeof(chunk))) {}

  /// Uses the caller's buffer, of any size and alignment, before it draws from `source`. The buffer
  /// must outlive the arena.
  explicit arena(std::span<std::byte> buffer, Source source = {}) noexcept
      : source_(source), next_chunk_(std::clamp(2 * buffer.size(), 4 * KiB, largest_chunk)), buffer_(buffer) {
    poison(buffer.data(), buffer.size());
    enter_buffer();
  }

  ~arena() {
    release_down_to(nullptr);
    release_spare();
    unpoison(buffer_.data(), buffer_.size());
  }

  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  /// `l.size` bytes, aligned to `l.alignment`. Null when the source has no more memory; the arena
  /// is as it was then. Five instructions where the layout is a constant. O(1) but for a new chunk.
  [[nodiscard]] void* allocate(layout l) noexcept {
    if (l.alignment > grain || l.size > largest_request) [[unlikely]]
      return allocate_aligned(l);
    const std::uintptr_t first = cursor_;
    const std::uintptr_t past = first + rounded(l.size);
    if (past > end_) [[unlikely]]
      return allocate_from_new_chunk(l);
    return take(first, past, l.size);
  }

  /// Takes the latest block back, with its padding, if TakeBack says so. A block that is not the
  /// latest stays in use. Null does nothing. O(1).
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) [[unlikely]]
      return;
    if constexpr (checks_callers) {
      if (!owns(p)) die("free of a foreign pointer", p, "(not a block of this arena)");
    }
    poison(p, rounded(l.size));
    if constexpr (TakeBack == take_back::latest) {
      if (address_of(p) + rounded(l.size) != cursor_) return;
      if (address_of(p) == seam_) [[unlikely]]
        return skip_seam();
      cursor_ = address_of(p);
    }
  }

  /// The latest block grows up to the end of its chunk, or gives back what it no longer needs. Any
  /// other block only gets smaller, and stays in use until a reset, even if it is freed. O(1).
  [[nodiscard]] bool try_resize(void* p, layout from, layout to) noexcept {
    if (!is_aligned(p, to.alignment)) return false;
    const std::uintptr_t first = address_of(p);
    if (first + rounded(from.size) != cursor_) return to.size <= from.size;
    if (to.size > largest_request || first + rounded(to.size) > end_) return false;
    cursor_ = first + rounded(to.size);
    if (to.size > from.size) {
      unpoison(reinterpret_cast<void*>(first + from.size), to.size - from.size);
    } else {
      poison(reinterpret_cast<void*>(first + to.size), rounded(from.size) - to.size);
    }
    return true;
  }

  /// Whether p points into memory that was handed out since the last reset. O(chunks).
  [[nodiscard]] bool owns(const void* p) const noexcept {
    const std::uintptr_t at = address_of(p);
    if (in_buffer(p)) return at >= buffer_begin() && at < (newest_ == nullptr ? cursor_ : buffer_used_);
    for (const chunk* c = newest_; c != nullptr; c = c->older) {
      if (at - c->begin() < c->end() - c->begin()) return at < (c == newest_ ? cursor_ : c->used);
    }
    return false;
  }

  /// Whether p points into the caller's buffer: tells what fitted from what was drawn from the
  /// source. O(1).
  [[nodiscard]] bool in_buffer(const void* p) const noexcept {
    return address_of(p) - address_of(buffer_.data()) < buffer_.size();
  }

  /// A state of the arena to which rewind returns.
  class mark_type {
    friend arena;
    mark_type(chunk* newest, std::uintptr_t cursor, std::uintptr_t seam) noexcept
        : newest_(newest), cursor_(cursor), seam_(seam) {}
    chunk* newest_;
    std::uintptr_t cursor_;
    std::uintptr_t seam_;
  };

  /// The newest chunk stays from now on: frees of the blocks in it do not lead back to older
  /// memory. O(1).
  [[nodiscard]] mark_type mark() const noexcept {
    if (newest_ != nullptr) newest_->is_marked = true;
    return {newest_, cursor_, seam_};
  }

  /// Frees all blocks allocated since the mark, and what older blocks have grown by in place since.
  /// Gives all chunks drawn since back to the source. The mark stays valid. Void are marks made
  /// since, and all marks from before a reset or a trim. O(chunks drawn since).
  void rewind(mark_type m) noexcept {
    release_down_to(m.newest_);
    release_spare();
    if (newest_ != nullptr) {
      end_ = newest_->end();
    } else {
      enter_buffer();
    }
    cursor_ = m.cursor_;
    seam_ = m.seam_;
    poison_rest();
  }

  /// Frees everything. Of the chunks the largest stays. If blocks lay in chunks, that one is used
  /// from now on in place of the buffer, which was too small. O(chunks).
  void reset() noexcept {
    if (newest_ == nullptr) {
      enter_buffer();
    } else {
      chunk* const kept = std::exchange(newest_, newest_->older);
      release_down_to(nullptr);
      keep_spare(kept);
      newest_ = std::exchange(spare_, nullptr);
      newest_->older = nullptr;
      newest_->first = 0;
      newest_->is_marked = false;
      cursor_ = newest_->begin();
      end_ = newest_->end();
      buffer_used_ = 0;
    }
    seam_ = 0;
    poison_rest();
  }

  /// Gives chunks without blocks back to the source: the one that a reset kept, and the one that
  /// frees have left. Returns the bytes given back. O(1).
  std::size_t trim() noexcept {
    std::size_t bytes = release_spare();
    if (newest_ == nullptr || newest_->older != nullptr || cursor_ != newest_->begin() || buffer_used_ != 0)
      return bytes;
    bytes += newest_->bytes;
    release_down_to(nullptr);
    enter_buffer();
    seam_ = 0;
    return bytes;
  }

  /// O(chunks).
  [[nodiscard]] arena_stats stats() const noexcept {
    arena_stats s{.in_use = buffer_used_ == 0 ? 0 : buffer_used_ - buffer_begin(), .held = buffer_.size(), .chunks = 0};
    for (const chunk* c = newest_; c != nullptr; c = c->older) {
      s.in_use += (c == newest_ ? cursor_ : c->used) - c->begin();
      s.held += c->bytes;
      ++s.chunks;
    }
    if (spare_ != nullptr) {
      s.held += spare_->bytes;
      ++s.chunks;
    }
    if (newest_ == nullptr && !buffer_.empty()) s.in_use = cursor_ - buffer_begin();
    return s;
  }

 private:
  static constexpr std::size_t largest_request = PTRDIFF_MAX;

  /// A block of no bytes takes room too, or it would lie where the arena does not own it.
  static constexpr std::size_t rounded(std::size_t size) noexcept {
    return align_up(size + (size == 0 ? 1 : 0), grain);
  }

  [[nodiscard]] std::uintptr_t buffer_begin() const noexcept { return align_up(address_of(buffer_.data()), grain); }
  [[nodiscard]] std::uintptr_t buffer_end() const noexcept { return address_of(buffer_.data() + buffer_.size()); }

  void enter_buffer() noexcept {
    cursor_ = buffer_.empty() ? grain : buffer_begin();
    end_ = buffer_.empty() ? 0 : buffer_end();
    buffer_used_ = 0;
  }

  void* take(std::uintptr_t first, std::uintptr_t past, std::size_t size) noexcept {
    cursor_ = past;
    void* const p = reinterpret_cast<void*>(first);
    unpoison(p, size);
    return p;
  }

  [[nodiscard, gnu::noinline]] void* allocate_aligned(layout l) noexcept {
    if (l.size > largest_request || l.alignment > largest_request) return nullptr;
    const std::uintptr_t first = align_up(cursor_, l.alignment);
    const std::uintptr_t past = first + rounded(l.size);
    if (past > end_) return allocate_from_new_chunk(l);
    note_padding(first);
    return take(first, past, l.size);
  }

  [[nodiscard, gnu::noinline]] void* allocate_from_new_chunk(layout l) noexcept {
    const std::size_t needed =
        align_up(sizeof(chunk) + rounded(l.size) + (l.alignment > grain ? l.alignment : 0), alignof(chunk));
    if (needed > largest_request) return nullptr;
    chunk* const fresh = spare_ != nullptr && spare_->bytes >= needed ? std::exchange(spare_, nullptr) : draw(needed);
    if (fresh == nullptr) return nullptr;
    if (newest_ != nullptr) {
      newest_->used = cursor_;
    } else if (!buffer_.empty()) {
      buffer_used_ = cursor_;
    }
    const bool is_only_memory = newest_ == nullptr && buffer_.empty();
    fresh->older = newest_;
    fresh->seam = seam_;
    fresh->is_marked = false;
    newest_ = fresh;
    seam_ = 0;
    end_ = fresh->end();
    cursor_ = fresh->begin();
    poison_rest();
    const std::uintptr_t first = align_up(cursor_, std::max(l.alignment, grain));
    if (is_only_memory || TakeBack == take_back::nothing) {
      fresh->first = 0;
      note_padding(first);
    } else {
      fresh->first = seam_ = first;
    }
    return take(first, first + rounded(l.size), l.size);
  }

  /// A chunk from the source, of the usual size or at least of `needed` bytes. Null: it has no
  /// more.
  [[nodiscard]] chunk* draw(std::size_t needed) noexcept {
    std::size_t bytes = std::max(next_chunk_, needed);
    void* fresh = source_.allocate({bytes, alignof(chunk)});
    if (fresh == nullptr && bytes > needed) {
      bytes = needed;
      fresh = source_.allocate({bytes, alignof(chunk)});
    }
    if (fresh == nullptr) return nullptr;
    next_chunk_ = std::max(next_chunk_, std::min(2 * bytes, largest_chunk));
    return new (fresh) chunk{nullptr, bytes, 0, 0, 0, false};
  }

  // Seams

  /// The block at `first` becomes a seam if padding lies between it and the cursor.
  void note_padding(std::uintptr_t first) noexcept {
    if constexpr (TakeBack == take_back::latest) {
      if (first == cursor_) return;
      arena_seam{.previous = seam_, .padding = first - cursor_}.write(first);
      seam_ = first;
    }
  }

  /// The latest block is freed, and it is a seam.
  [[gnu::noinline]] void skip_seam() noexcept {
    if (newest_ != nullptr && newest_->first == seam_) {
      cursor_ = seam_;
      if (!newest_->is_marked) leave_chunk();
      return;
    }
    const arena_seam latest = arena_seam::read(seam_);
    cursor_ = seam_ - latest.padding;
    seam_ = latest.previous;
  }

  /// Goes back to the memory that was in use before the newest chunk, which has no blocks. The
  /// chunk stays as the spare: a program that allocates and frees at the border asks the source
  /// once.
  void leave_chunk() noexcept {
    chunk* const left = newest_;
    newest_ = left->older;
    seam_ = left->seam;
    if (newest_ != nullptr) {
      cursor_ = newest_->used;
      end_ = newest_->end();
    } else {
      cursor_ = buffer_used_;
      end_ = buffer_end();
      buffer_used_ = 0;
    }
    keep_spare(left);
  }

  // Chunks

  /// Keeps the larger of `c` and the spare.
  void keep_spare(chunk* c) noexcept {
    if (spare_ != nullptr && spare_->bytes > c->bytes) std::swap(spare_, c);
    if (spare_ != nullptr) release(spare_);
    spare_ = c;
  }

  /// Returns the bytes given back.
  std::size_t release_spare() noexcept {
    if (spare_ == nullptr) return 0;
    const std::size_t bytes = spare_->bytes;
    release(std::exchange(spare_, nullptr));
    return bytes;
  }

  void release(chunk* c) noexcept {
    unpoison(c, c->bytes);
    source_.deallocate(c, {c->bytes, alignof(chunk)});
  }

  void release_down_to(const chunk* last) noexcept {
    while (newest_ != last) {
      if (newest_ == nullptr) die("rewind to a mark that is void", last, "(made before a reset or a trim)");
      release(std::exchange(newest_, newest_->older));
    }
  }

  void poison_rest() const noexcept {
    if (cursor_ < end_) poison(reinterpret_cast<void*>(cursor_), end_ - cursor_);
  }

  std::uintptr_t cursor_ = grain;
  std::uintptr_t end_ = 0;
  std::uintptr_t seam_ = 0;
  chunk* newest_ = nullptr;
  [[no_unique_address]] Source source_;
  std::size_t next_chunk_;
  std::span<std::byte> buffer_;
  chunk* spare_ = nullptr;          ///< without blocks, and not in the list of chunks
  std::uintptr_t buffer_used_ = 0;  ///< where the cursor left the buffer; 0: it has not, or has come back
};
}  // namespace heapwright
