// What a recipe says about each size class, worked out at compile time: block size, pages per span,
// batch sizes.
//
//   1 .. cut_end-1          blocks cut from spans
//   cut_end .. count-1      page-run classes: each block is a page run. First the longer sizes,
//                           then those that have to begin at a page
//
// Cache colouring. Blocks that all begin at a page have their first lines in the same few sets of
// the processor's cache. So from two pages on, blocks in a span are longer by a cache line, and
// neighbours begin at different ones. The first block of a span begins at one of the lines that the
// span has left over, and a page-run block at one of 16 lines. Classes for alignments above a cache
// line have no colouring.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heapwright/core/exact_divisor.hpp>
#include <heapwright/core/layout.hpp>
#include <heapwright/heap/recipe.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

/// What guards a part of a heap that several threads use.
template <const recipe& R, platform OS>
using heap_lock = std::conditional_t<R.concurrency == concurrency_mode::thread_caching, lock<OS>, no_lock>;

/// The heap's page: the grain of the page map and of spans. The system's page may be larger (16
/// KiB, 64 KiB); then only whole system pages are given back, and nothing else changes.
inline constexpr std::size_t heap_page = 4 * KiB;
inline constexpr unsigned heap_page_shift = 12;

template <const recipe& R>
class class_table {
  static_assert(R.classes.steps_are_valid(),
                "recipe.classes: steps_per_doubling and largest must be powers of two, largest at least 16 x steps");
  static_assert(R.classes.exact_is_valid(),
                "recipe.classes.exact: at most 32 sizes, rising, multiples of 8, from 16 on");
  static_assert(
      R.classes.exact_meets_steps() && R.classes.exact.last() <= R.spans.largest_cut,
      "recipe.classes.exact: the last size must be one that the steps per doubling give too (a power of two is), at "
      "most spans.largest_cut");
  static_assert(R.classes.count() < 255, "recipe.classes: at most 254 classes");
  static_assert(R.spans.first.is_valid() && R.spans.first_of_small.is_valid() && R.spans.last.is_valid(),
                "recipe.spans: a span holds at least one block");
  static_assert(R.spans.growth_divisor >= 1, "recipe.spans.growth_divisor: at least 1");
  static_assert(R.pages.headroom_divisor >= 1, "recipe.pages.headroom_divisor: at least 1");
  static_assert(R.pages.numa_node >= -1, "recipe.pages.numa_node: a node, or -1 for none");
  static_assert(R.thread_cache.long_divisor >= 1, "recipe.thread_cache.long_divisor: at least 1");
  static_assert(R.thread_cache.share_bytes >= R.thread_cache.first_bytes,
                "recipe.thread_cache.share_bytes: not below first_bytes, what a thread keeps of one class at first");
  static_assert(R.thread_cache.max_long_bytes >= R.thread_cache.share_bytes,
                "recipe.thread_cache.max_long_bytes: not below share_bytes, which long blocks have at least");
  static_assert(R.thread_cache.max_batch >= 1 && R.thread_cache.max_batch <= 256,
                "recipe.thread_cache.max_batch: from 1 to 256 blocks move at a time");
  static_assert(R.thread_cache.max_blocks_per_class >= R.thread_cache.max_batch,
                "recipe.thread_cache: a class must hold at least one batch");
  static_assert(R.thread_cache.max_blocks_per_class <= 32767, "recipe.thread_cache: block counts are 16 bits wide");
  static_assert(is_power_of_two(R.spans.largest_cut) && R.spans.largest_cut <= R.classes.largest &&
                    R.spans.largest_cut / R.classes.steps_per_doubling >= heap_page,
                "recipe.spans.largest_cut: a power of two, at most classes.largest, and at least 4096 times "
                "classes.steps_per_doubling (64 KiB for 16 steps)");
  static_assert(R.thread_cache.first_bytes < 2 * heap_page,
                "recipe.thread_cache.first_bytes: shorter than two pages; longer blocks are long");
  static_assert(R.pages.growth % (64 * KiB) == 0 && R.pages.max_growth >= R.pages.growth,
                "recipe.pages: growth is a multiple of 64 KiB, max_growth not below it");

  static_assert(R.out_of_memory == nullptr || R.concurrency != concurrency_mode::central,
                "recipe.out_of_memory: where concurrency is central it would be asked under the heap's lock, and could "
                "not free a block");
  static_assert(R.pages.growth > 0, "recipe.pages.growth: not 0");
  static_assert(R.pages.limit >= 64 * KiB, "recipe.pages.limit: at least 64 KiB, or there would be no room for a span");
  static_assert(!(R.pages.prefault || R.pages.locked) || R.pages.give_back != give_back_policy::over_time,
                "recipe.pages: memory that is touched ahead or locked would be given back after a window; give_back "
                "must be at_once or when_asked");
  static_assert(R.pages.huge != huge_page_use::reserved || R.pages.growth % (2 * MiB) == 0,
                "recipe.pages.growth: a multiple of 2 MiB where huge pages are reserved");

  static_assert(!R.hardening.separate_classes || (R.hardening.guard_large && R.spans.mixed_up_to == 0),
                "recipe.hardening.separate_classes: with guard_large, and without spans.mixed_up_to");
  static_assert(!R.hardening.guard_large || R.pages.huge != huge_page_use::reserved,
                "recipe.hardening.guard_large: each guard would take a huge page of its own where they are reserved");

  static_assert(
      R.hardening.sealed || (!R.hardening.check_reuse && R.hardening.quarantine_bytes == 0),
      "recipe.hardening: check_reuse and quarantine_bytes need sealed, which tells free blocks from live ones");
  static_assert(
      !R.hardening.sealed || (R.spans.mixed_up_to == 0 && !R.notes_requests),
      "recipe.hardening.sealed: not with spans.mixed_up_to or notes_requests; the seal says how much was asked for");

  static constexpr unsigned page_aligned = R.classes.count() + 1;  ///< the class of two pages; the next is one longer
  static constexpr std::size_t largest_page_aligned = R.spans.largest_cut;

 public:
  static constexpr unsigned cut_end = R.classes.index(R.spans.largest_cut) + 1;
  static constexpr unsigned count = page_aligned + largest_page_aligned / heap_page - 1;  ///< 0 is "none"

  /// Classes [mixed_begin, mixed_end) share mixed spans (mixed_spans.hpp), where there are any.
  static constexpr bool has_mixed = R.spans.mixed_up_to != 0;
  static constexpr unsigned mixed_begin = R.spans.mixed_from == 0 ? 1 : R.classes.index(R.spans.mixed_from);
  static constexpr unsigned mixed_end = has_mixed ? R.classes.index(R.spans.mixed_up_to) + 1 : mixed_begin;
  static_assert(!has_mixed || R.spans.mixed_up_to <= heap_page, "recipe.spans.mixed_up_to: at most 4096");
  static_assert(!has_mixed || R.classes.granule() == 16,
                "recipe.spans.mixed_up_to: where all sizes of classes.exact are multiples of 16");
  static_assert(!has_mixed || mixed_begin < mixed_end, "recipe.spans: mixed_from is not above mixed_up_to");
  static_assert(has_mixed || R.spans.mixed_from == 0, "recipe.spans.mixed_from: without mixed_up_to nothing is mixed");

  /// The first class of long blocks: longer than `first_bytes`.
  static constexpr unsigned first_long = [] {
    unsigned c = 1;
    while (R.classes.size(c) <= R.thread_cache.first_bytes) ++c;
    return c;
  }();
  static_assert(count <= 255,
                "recipe.classes, recipe.spans.largest_cut: more than 254 classes, with those aligned to a page");

  static constexpr std::size_t largest_cut = R.spans.largest_cut;

  /// What every block is aligned to whose size may ask for it.
  static constexpr std::size_t natural_alignment = R.classes.granule();

  /// A block of a page-run class begins at one of so many lines.
  static constexpr std::size_t lines_of_page_run = 16;
  static constexpr std::size_t largest_offset = (lines_of_page_run - 1) * cache_line;

  /// The longest block that has a class.
  static constexpr std::size_t largest = R.classes.largest - largest_offset;

  struct entry {
    std::uint32_t size;         ///< bytes per block
    std::uint32_t first_pages;  ///< heap pages of the shortest span; of a page-run block
    std::uint32_t last_pages;   ///< of the longest
    std::uint16_t batch;        ///< blocks of a transfer batch
    std::uint16_t first_kept;   ///< freed blocks a thread may keep at first ...
    std::uint16_t max_kept;     ///< ... and at most
  };

  [[nodiscard]] static constexpr const entry& of(unsigned c) noexcept { return entries_[c]; }

  /// By the size of a class that is cut from spans.
  [[nodiscard]] static constexpr const exact_divisor& divisor(unsigned c) noexcept { return divisors_[c]; }

  /// Heap pages of a new span of class c, when the class has so many bytes in use.
  [[nodiscard]] static constexpr std::size_t span_pages(unsigned c, std::uint64_t in_use) noexcept {
    const entry& info = of(c);
    const std::uint64_t part = in_use / R.spans.growth_divisor / heap_page;
    if (part >= info.last_pages) return info.last_pages;
    return std::max<std::size_t>(part - part % info.first_pages, info.first_pages);
  }

  /// The first block of a span of class c begins at one of so many lines: as many as are left over
  /// behind the last block, up to a page.
  [[nodiscard]] static constexpr std::size_t lines_of_span(unsigned c, std::size_t bytes) noexcept {
    const std::size_t size = of(c).size;
    return size <= largest_even ? 1 : std::min(bytes % size / cache_line + 1, heap_page / cache_line);
  }

  [[nodiscard]] static constexpr bool is_mixed(unsigned c) noexcept {
    return c - mixed_begin < mixed_end - mixed_begin;
  }

  /// A thread keeps none of a long class at first.
  [[nodiscard]] static constexpr bool is_long(unsigned c) noexcept { return c >= first_long; }

  /// No two blocks of class c begin in the same page, so each has a tag of its own, and threads can
  /// share a span.
  [[nodiscard]] static constexpr bool has_own_tags(unsigned c) noexcept { return of(c).size >= heap_page; }

  /// Each block of class c is a run of pages of its own.
  [[nodiscard]] static constexpr bool is_page_run(unsigned c) noexcept { return c >= cut_end; }

  /// Bytes that a block of class c takes from its span, or the page run that it is.
  [[nodiscard]] static constexpr std::size_t held_bytes(unsigned c) noexcept {
    return is_page_run(c) ? of(c).first_pages * heap_page : of(c).size;
  }

  [[nodiscard]] static constexpr bool is_page_aligned(unsigned c) noexcept { return c >= page_aligned; }

  /// The class for a size; 0 when it is too large for any.
  [[nodiscard]] static constexpr unsigned index(std::size_t size) noexcept {
    if (size <= largest_cut) return R.classes.index(size);
    return size <= largest ? R.classes.index(size + largest_offset) : 0;
  }

  /// The smallest class whose blocks are all aligned to `alignment`; 0 when there is none. A
  /// multiple of the alignment is either a class itself, or the classes around it are further apart
  /// than the alignment, and multiples of it.
  [[nodiscard]] static constexpr unsigned index_aligned(std::size_t size, std::size_t alignment) noexcept {
    if (alignment > heap_page || size > largest) return 0;
    std::size_t rounded = align_up(std::max<std::size_t>(size, 1), alignment);
    if constexpr (has_mixed) {
      // Blocks of mixed spans begin anywhere.
      if (alignment > R.classes.granule() && rounded <= R.spans.mixed_up_to)
        rounded = std::max(rounded, align_up(R.spans.mixed_up_to + 1, alignment));
    }
    if (rounded <= R.classes.exact.last()) {
      if (const unsigned c = exact_aligned(rounded, alignment)) return c;
    } else if (alignment <= cache_line || rounded <= largest_even) {
      return index(rounded);
    }
    const auto pages = std::max(static_cast<unsigned>(divide_up(rounded, heap_page)), 2U);
    return pages * heap_page <= largest_page_aligned ? page_aligned + pages - 2 : 0;
  }

 private:
  /// The first class from this size on whose blocks are aligned so; 0 when there is none. Spans of
  /// blocks of two pages and more begin at any line.
  static constexpr unsigned exact_aligned(std::size_t rounded, std::size_t alignment) noexcept {
    for (unsigned c = R.classes.index(rounded); c < cut_end; ++c) {
      if (alignment > cache_line && R.classes.size(c) > largest_even) return 0;
      if (of(c).size % alignment == 0) return c;
    }
    return 0;
  }

  /// Blocks of a span up to here are as long as their class says, those of two pages and more
  /// longer by a line.
  static constexpr std::size_t largest_even = R.classes.size(R.classes.index(2 * heap_page) - 1);

  static constexpr std::size_t block_size(unsigned c) {
    if (is_page_aligned(c)) return (c - page_aligned + 2) * heap_page;
    const std::size_t size = R.classes.size(c);
    if (is_page_run(c)) return size - largest_offset;
    return size <= largest_even ? size : size + cache_line;
  }

  static constexpr std::uint32_t fewest_pages(std::size_t size, const span_length& asked) {
    std::size_t bytes = align_up(std::max(asked.min_bytes, size * asked.min_blocks), heap_page);
    while (bytes % size > bytes / asked.max_waste_divisor) bytes += heap_page;
    return static_cast<std::uint32_t>(bytes / heap_page);
  }

  static constexpr auto make_entries() {
    constexpr auto& plan = R.thread_cache;
    std::array<entry, count> all{};
    for (unsigned c = 1; c < count; ++c) {
      const std::size_t size = block_size(c);
      const auto run = static_cast<std::uint32_t>(divide_up(size, heap_page));
      const std::uint32_t last = is_page_run(c) ? run : fewest_pages(size, R.spans.last);
      const span_length& first_length = size <= R.spans.small ? R.spans.first_of_small : R.spans.first;
      const std::uint32_t first = is_page_run(c) ? run : std::min(fewest_pages(size, first_length), last);
      const std::size_t batch = std::clamp<std::size_t>(plan.batch_bytes / size, 1, plan.max_batch);
      const std::size_t most = size > plan.first_bytes ? plan.max_bytes_per_long : plan.max_bytes_per_class;
      const std::size_t kept = std::clamp(most / size, batch, plan.max_blocks_per_class);
      all[c] = {.size = static_cast<std::uint32_t>(size),
                .first_pages = first,
                .last_pages = last,
                .batch = static_cast<std::uint16_t>(batch),
                .first_kept = static_cast<std::uint16_t>(plan.fixed ? kept : std::min(plan.first_bytes / size, batch)),
                .max_kept = static_cast<std::uint16_t>(kept)};
    }
    return all;
  }

  static constexpr std::array<entry, count> entries_ = make_entries();

  static constexpr auto divisors_ = []<std::size_t... C>(std::index_sequence<C...>) {
    return std::array{exact_divisor(C == 0 ? 1 : entries_[C].size)...};
  }(std::make_index_sequence<cut_end>());
};

}  // namespace heapwright
