// Blocks that are a run of pages each: large ones, which are too long for any class or aligned to
// more than a page, and those of page-run classes that grow or shrink.
//
// Like blocks of several pages in a span (class_table.hpp), large blocks begin at different lines
// of the processor's cache, unless the caller asks for an alignment.
//
// The span of a large block knows what was asked for, so mistakes with it are found when it is
// freed or resized, but where blocks have seals, which know more: a wrong size or alignment, and
// writes beside it. Invariant for these: between the beginning and the end of the block's pages,
// `looked_at` bytes before the block and behind it are 0. In pages fresh from the system they are,
// untouched.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/check.hpp>
#include <heapwright/heap/block_claim.hpp>
#include <heapwright/heap/misuse.hpp>
#include <heapwright/heap/page_heap.hpp>

namespace heapwright {

/// Functions on a page heap, which guards itself. They keep no state.
template <const recipe& R, platform OS>
class large_blocks {
  using classes = class_table<R>;
  using pages = page_heap<R, OS>;

 public:
  /// `size` bytes, aligned. Null when the system has no memory, or beyond PTRDIFF_MAX. `grows`: it
  /// was resized, and may be again.
  [[nodiscard, gnu::noinline]] static span* allocate(pages& heap, std::size_t size, std::size_t alignment,
                                                     bool grows = false) noexcept {
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX / 2) return nullptr;
    heap.tick();
    span* const s = allocate_run(heap, size, alignment, grows);
    // It carries no mark, but may become a block of a class, which does: the block that was there
    // before may have left one.
    if (s == nullptr) return nullptr;
    misuse<R, OS>::note_allocated(reinterpret_cast<block*>(s->block_begin()));
    note_request(*s, std::max<std::size_t>(size, 1), alignment, s->zeroed);
    return s;
  }

  /// `said`: by the caller.
  [[gnu::noinline]] static void deallocate(pages& heap, span* s, const block_claim& said = {}) noexcept {
    check(*s, said);
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
    // A block without a seal must end where its guard page begins.
    if constexpr (R.hardening.guard_large) return nullptr;
    check(*s, {});
    const unsigned c = classes::index(size);
    const std::size_t pages_needed = c != 0 ? classes::of(c).first_pages : divide_up(size + s->offset, heap_page);
    if (!heap.try_resize(s, pages_needed)) {
      if (s->bytes() < worth_moving || pages_needed <= s->pages) return nullptr;
      if (span* const roomy = copy_to_room(heap, s, size)) return roomy;
      if (!heap.try_remap(s, pages_needed)) return nullptr;
    }
    heap.set_class(s, c, owner);
    if (c == 0) note_request(*s, size, default_alignment, false);
    return s;
  }

  /// A block that has room for `size` bytes stays where it is.
  [[gnu::noinline, gnu::cold]] static void stay(span& s, std::size_t size) noexcept {
    if (s.size_class != 0) return;
    check(s, {});
    note_request(s, size, default_alignment, false);
  }

 private:
  /// From this size on, zeroed memory is had from the system page by page as it is used, as
  /// programs with large tables expect.
  static constexpr std::size_t worth_discarding = 4 * MiB;

  /// From this size on, moving pages is cheaper than copying them. Up to the other, copying costs
  /// no more than the faults in what the block grows by, and some 100 microseconds.
  static constexpr std::size_t worth_moving = 256 * KiB;
  static constexpr std::size_t worth_copying = 1 * MiB;

  [[nodiscard]] static span* allocate_run(pages& heap, std::size_t size, std::size_t alignment,
                                          [[maybe_unused]] bool grows) noexcept {
    if constexpr (R.hardening.guard_large) return heap.allocate_guarded(size, alignment, grows);
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
    note_request(*roomy, size, default_alignment, false);
    return roomy;
  }

  // --- what was asked for

  static constexpr std::size_t looked_at = 64;
  static constexpr std::byte zeros[looked_at]{};

  /// `is_fresh`: all of its pages read as zero.
  static void note_request([[maybe_unused]] span& s, [[maybe_unused]] std::size_t size,
                           [[maybe_unused]] std::size_t alignment, [[maybe_unused]] bool is_fresh) noexcept {
    if constexpr (!R.hardening.sealed) {
      s.set_asked_bytes(size);
      s.alignment_log2 = alignment <= default_alignment ? 0 : static_cast<std::uint8_t>(std::countr_zero(alignment));
      if (is_fresh) return;
      std::memset(s.block_begin() - before(s), 0, before(s));
      std::memset(s.block_begin() + size, 0, behind(s));
    }
  }

  /// So many bytes before the block are looked at, and behind it.
  static std::size_t before(const span& s) noexcept { return std::min<std::size_t>(s.offset, looked_at); }
  static std::size_t behind(const span& s) noexcept { return std::min<std::size_t>(s.slack, looked_at); }

  /// Where the process goes on, the block is freed or resized as if nothing was wrong: nothing of
  /// the heap lies beside it.
  [[gnu::noinline]] static void check([[maybe_unused]] const span& s,
                                      [[maybe_unused]] const block_claim& said) noexcept {
    if constexpr (!R.hardening.sealed) {
      if (s.size_class != 0) return;
      const std::byte* const begin = s.block_begin();
      const std::size_t size = s.asked_bytes();
      const std::size_t alignment = s.alignment_log2 == 0 ? 0 : std::size_t{1} << s.alignment_log2;
      // Code that does not know aligned new frees what another has allocated so: it says no
      // alignment.
      const bool is_aligned_as_said =
          said.alignment == block_claim::not_said || said.alignment == alignment || said.alignment <= default_alignment;
      // A block that is large for its alignment alone may have been resized without a word here.
      const bool is_as_long_as_said =
          said.size == block_claim::not_said || said.size == size || size <= classes::largest;
      if (std::memcmp(begin - before(s), zeros, before(s)) != 0) [[unlikely]]
        mistake("write before a block", s, "found when it is freed or resized");
      if (std::memcmp(begin + size, zeros, behind(s)) != 0) [[unlikely]]
        mistake("write beyond a block", s, "found when it is freed or resized");
      if (!is_as_long_as_said) [[unlikely]]
        mistake("free with a wrong size", s,
                text<60>().add("freed with one of ").add(std::uint64_t{said.size}).c_str());
      if (!is_aligned_as_said) [[unlikely]]
        mistake("free with a wrong alignment", s,
                text<60>().add("freed with one of ").add(std::uint64_t{said.alignment}).c_str());
    }
  }

  [[gnu::cold, gnu::noinline]] static void mistake(const char* what, const span& s, const char* detail) noexcept {
    text<200> all;
    all.add("(").add(detail).add("; a block of ").add(std::uint64_t{s.asked_bytes()}).add(" bytes");
    if (s.alignment_log2 != 0) all.add(", aligned to ").add(std::uint64_t{1} << s.alignment_log2);
    report_mistake(what, s.block_begin(), all.add(")").c_str());
  }
};

}  // namespace heapwright
