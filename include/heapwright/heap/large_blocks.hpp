// Blocks that are a run of pages each: large ones, which are too long for any class or aligned to
// more than a page, and those of page-run classes that grow or shrink.
//
// Like blocks of several pages in a span (class_table.hpp), large blocks begin at different lines
// of the processor's cache, unless the caller asks for an alignment.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/heap/misuse.hpp>
#include <heapwright/heap/page_heap.hpp>

namespace heapwright {

/// Functions on a page heap, which guards itself. They keep no state.
template <const recipe& R, platform OS>
class large_blocks {
  using classes = class_table<R>;
  using pages = page_heap<R, OS>;

 public:
  /// `size` bytes, aligned. Null when the system has no memory, or beyond PTRDIFF_MAX.
  [[nodiscard, gnu::noinline]] static span* allocate(pages& heap, std::size_t size, std::size_t alignment) noexcept {
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX / 2) return nullptr;
    heap.tick();
    span* const s = allocate_run(heap, size, alignment);
    // It carries no mark, but may become a block of a class, which does: the block that was there
    // before may have left one.
    if (s != nullptr) misuse<R, OS>::note_allocated(reinterpret_cast<block*>(s->block_begin()));
    return s;
  }

  [[gnu::noinline]] static void deallocate(pages& heap, span* s) noexcept {
    if constexpr (R.hardening.zero_freed || (R.hardening.check_reuse && !pages::hides_large)) clear(heap, s);
    heap.release(s);
    heap.tick();
  }

  /// Makes a fresh block of `size` bytes read as zero. Pages fresh from the system are not cleared
  /// again.
  static void* zeroed(pages& heap, span* s, std::size_t size) noexcept {
    if (!s->zeroed && (size < worth_discarding || !heap.clear(s))) std::memset(s->block_begin(), 0, size);
    return s->block_begin();
  }

  /// Makes a block longer or shorter: where it is; or by copying it, if that is not much, to where
  /// it can grow without being moved again; or by moving its pages. The block belongs to the thread
  /// with these owner bits then. Null: it is as it was. Precondition: `size` is beyond largest_cut.
  [[nodiscard, gnu::noinline, gnu::cold]] static span* resize(pages& heap, span* s, std::size_t size,
                                                              page_tag owner) noexcept {
    if constexpr (R.hardening.guard_large) return nullptr;
    const unsigned c = classes::index(size);
    const std::size_t pages_needed = c != 0 ? classes::of(c).first_pages : divide_up(size + s->offset, heap_page);
    if (!heap.try_resize(s, pages_needed)) {
      if (s->bytes() < worth_moving || pages_needed <= s->pages) return nullptr;
      if (span* const roomy = copy_to_room(heap, s, size)) return roomy;
      if (!heap.try_remap(s, pages_needed)) return nullptr;
    }
    heap.set_class(s, c, owner);
    return s;
  }

 private:
  /// From this size on, zeroed memory is had from the system page by page as it is used, as
  /// programs with large tables expect.
  static constexpr std::size_t worth_discarding = 4 * MiB;

  /// From this size on, moving pages is cheaper than copying them. Up to the other, copying costs
  /// no more than the faults in what the block grows by, and some 100 microseconds.
  static constexpr std::size_t worth_moving = 256 * KiB;
  static constexpr std::size_t worth_copying = 1 * MiB;

  [[nodiscard]] static span* allocate_run(pages& heap, std::size_t size, std::size_t alignment) noexcept {
    if constexpr (R.hardening.guard_large) return heap.allocate_guarded(size, alignment);
    const std::size_t lines = alignment <= cache_line ? classes::lines_of_page_run : 1;
    const std::size_t bytes = std::max<std::size_t>(size, 1) + (lines - 1) * cache_line;
    return heap.allocate(divide_up(bytes, heap_page), std::max(alignment, heap_page), span_state::large, lines);
  }

  static void clear(pages& heap, span* s) noexcept {
    if (s->bytes() < worth_discarding || !heap.clear(s)) std::memset(s->block_begin(), 0, s->block_bytes());
  }

  static span* copy_to_room(pages& heap, span* s, std::size_t size) noexcept {
    if (s->bytes() > worth_copying) return nullptr;
    span* const roomy = heap.allocate_with_room(divide_up(size + classes::largest_offset, heap_page));
    if (roomy == nullptr) return nullptr;
    std::memcpy(roomy->block_begin(), s->block_begin(), s->block_bytes());
    deallocate(heap, s);
    return roomy;
  }
};

}  // namespace heapwright
