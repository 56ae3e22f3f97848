// A pointer that moves up through memory. Allocation is one addition; of single blocks at most the latest is freed, otherwise all are at once.
//
//   chunk:  [ header | blocks ... | free ... ]
//                       cursor_ ---^     ^--- end_
//
// States      cursor_ is in               entered
//   empty     no memory: it is > end_     at first, without a buffer
//   buffer    the caller's buffer         at first, with one; and again when everything drawn since was rewound or trimmed
//   chunk     the newest chunk            when a request does not fit; each chunk is twice as large as the one before
// Invariant: cursor_ is a multiple of `grain`; chunks are linked from newest to oldest; older ones are left as they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/poison.hpp>
#include <heapwright/source/upstream.hpp>

namespace heapwright {

/// Bytes. in_use counts what alignment left over between blocks; held counts chunks with their headers.
struct arena_stats {
  std::size_t in_use;
  std::size_t held;
  std::size_t chunks;
};

/// What is taken back when a single block is freed.
enum class take_back : std::uint8_t {
  latest,   ///< the block, if it is the latest one: what comes and goes in a loop does not make the arena grow
  nothing,  ///< one comparison less per free, which a container of nodes never profits from
};

/// Blocks of any layout, freed as a whole. Not thread-safe. Null when the source has no more; then everything is as it was.
template <allocator Source = upstream_malloc, take_back TakeBack = take_back::latest>
class arena {
  struct chunk {
    chunk* older;
    std::size_t bytes;    ///< with this header
    std::uintptr_t used;  ///< where the cursor was when the next chunk came

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

  /// Uses the caller's buffer, of any size and alignment, before it draws from `source`. The buffer must outlive the arena.
  explicit arena(std::span<std::byte> buffer, Source source = {}) noexcept
      : source_(source), next_chunk_(std::clamp(2 * buffer.size(), 4 * KiB, largest_chunk)), buffer_(buffer) {
    poison(buffer.data(), buffer.size());
    enter_buffer();
  }

  ~arena() {
    release_down_to(nullptr);
    unpoison(buffer_.data(), buffer_.size());
  }

  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  /// Five instructions where the layout is a constant. O(1) but for a new chunk.
  [[nodiscard]] void* allocate(layout l) noexcept {
    if (l.alignment > grain || l.size > largest_request) [[unlikely]]
      return allocate_aligned(l);
    const std::uintptr_t first = cursor_;
    const std::uintptr_t past = first + rounded(l.size);
    if (past > end_) [[unlikely]]
      return allocate_from_new_chunk(l);
    return take(first, past, l.size);
  }

  /// Takes the block back if it is the latest one and TakeBack says so; otherwise nothing happens. O(1).
  void deallocate(void* p, layout l) noexcept {
    if constexpr (checks_callers) {
      if (!owns(p)) die("free of a foreign pointer", p, "(not a block of this arena)");
    }
    poison(p, rounded(l.size));
    if constexpr (TakeBack == take_back::latest) {
      if (address_of(p) + rounded(l.size) == cursor_) cursor_ = address_of(p);
    }
  }

  /// The latest block can grow to the end of its chunk, and its rest is taken back. Any other only gets smaller. O(1).
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

  /// Whether p points into the caller's buffer: tells what fitted from what was drawn from the source. O(1).
  [[nodiscard]] bool in_buffer(const void* p) const noexcept {
    return address_of(p) - address_of(buffer_.data()) < buffer_.size();
  }

  /// A moment of the arena's life, to come back to.
  class mark_type {
    friend arena;
    mark_type(chunk* newest, std::uintptr_t cursor) noexcept : newest_(newest), cursor_(cursor) {}
    chunk* newest_;
    std::uintptr_t cursor_;
  };

  [[nodiscard]] mark_type mark() const noexcept { return {newest_, cursor_}; }

  /// Frees what was allocated since the mark was made, and what grew in place since, and gives chunks drawn since back. Marks made since,
  /// and all marks from before a reset or a trim, are void. O(chunks drawn since).
  void rewind(mark_type m) noexcept {
    release_down_to(m.newest_);
    if (newest_ != nullptr) {
      end_ = newest_->end();
    } else {
      enter_buffer();
    }
    cursor_ = m.cursor_;
    poison_rest();
  }

  /// Frees everything. The newest chunk stays, and is used from now on: it is the largest, and the buffer was too small.
  void reset() noexcept {
    if (newest_ == nullptr) {
      enter_buffer();
    } else {
      chunk* const kept = newest_;
      newest_ = kept->older;
      release_down_to(nullptr);
      kept->older = nullptr;
      newest_ = kept;
      cursor_ = kept->begin();
      end_ = kept->end();
      buffer_used_ = 0;
    }
    poison_rest();
  }

  /// Gives the chunk that a reset kept back to the source, if nothing is in it. Returns the bytes given back.
  std::size_t trim() noexcept {
    if (newest_ == nullptr || newest_->older != nullptr || cursor_ != newest_->begin() || buffer_used_ != 0) return 0;
    const std::size_t bytes = newest_->bytes;
    release_down_to(nullptr);
    enter_buffer();
    return bytes;
  }

  [[nodiscard]] arena_stats stats() const noexcept {
    arena_stats s{.in_use = buffer_used_ == 0 ? 0 : buffer_used_ - buffer_begin(), .held = buffer_.size(), .chunks = 0};
    for (const chunk* c = newest_; c != nullptr; c = c->older) {
      s.in_use += (c == newest_ ? cursor_ : c->used) - c->begin();
      s.held += c->bytes;
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
    return take(first, past, l.size);
  }

  [[nodiscard, gnu::noinline]] void* allocate_from_new_chunk(layout l) noexcept {
    const std::size_t needed = sizeof(chunk) + rounded(l.size) + (l.alignment > grain ? l.alignment : 0);
    if (needed > largest_request) return nullptr;
    std::size_t bytes = std::max(next_chunk_, align_up(needed, alignof(chunk)));
    void* fresh = source_.allocate({bytes, alignof(chunk)});
    if (fresh == nullptr && bytes > needed) {
      bytes = align_up(needed, alignof(chunk));
      fresh = source_.allocate({bytes, alignof(chunk)});
    }
    if (fresh == nullptr) return nullptr;
    if (newest_ != nullptr) {
      newest_->used = cursor_;
    } else if (!buffer_.empty()) {
      buffer_used_ = cursor_;
    }
    newest_ = new (fresh) chunk{newest_, bytes, 0};
    next_chunk_ = std::max(next_chunk_, std::min(2 * bytes, largest_chunk));
    end_ = newest_->end();
    cursor_ = newest_->begin();
    poison_rest();
    const std::uintptr_t first = align_up(cursor_, std::max(l.alignment, grain));
    return take(first, first + rounded(l.size), l.size);
  }

  void release_down_to(const chunk* last) noexcept {
    while (newest_ != last) {
      if (newest_ == nullptr) die("rewind to a mark that is void", last, "(made before a reset or a trim)");
      chunk* const c = newest_;
      newest_ = c->older;
      unpoison(c, c->bytes);
      source_.deallocate(c, {c->bytes, alignof(chunk)});
    }
  }

  void poison_rest() const noexcept {
    if (cursor_ < end_) poison(reinterpret_cast<void*>(cursor_), end_ - cursor_);
  }

  std::uintptr_t cursor_ = grain;
  std::uintptr_t end_ = 0;
  chunk* newest_ = nullptr;
  [[no_unique_address]] Source source_;
  std::size_t next_chunk_;
  std::span<std::byte> buffer_;
  std::uintptr_t buffer_used_ = 0;  ///< where the cursor left the buffer; 0: it has not, or has come back
};
}  // namespace heapwright
