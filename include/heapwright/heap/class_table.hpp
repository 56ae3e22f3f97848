// What a recipe says about each size class, worked out at compile time: block size, pages per span, batch sizes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/layout.hpp>
#include <heapwright/heap/recipe.hpp>

namespace heapwright {

/// The heap's page: the grain of the page map and of spans. The system's page may be larger (16 KiB, 64 KiB); then only
/// whole system pages are given back, and nothing else changes.
inline constexpr std::size_t heap_page = 4 * KiB;
inline constexpr unsigned heap_page_shift = 12;

template <recipe R>
class class_table {
  static_assert(R.classes.valid(),
                "recipe.classes: steps_per_doubling and largest must be powers of two, largest at least 16 x steps, at "
                "most 254 classes");
  static_assert(R.spans.min_blocks >= 1 && R.spans.max_waste_divisor >= 1,
                "recipe.spans: a span holds at least one block");
  static_assert(R.thread_cache.max_batch >= 1, "recipe.thread_cache.max_batch: at least one block moves at a time");
  static_assert(R.thread_cache.max_blocks_per_class >= R.thread_cache.max_batch,
                "recipe.thread_cache: a class must hold at least one batch");
  static_assert(R.thread_cache.max_blocks_per_class <= 32767, "recipe.thread_cache: block counts are 16 bits wide");
  static_assert(R.pages.growth % (64 * KiB) == 0 && R.pages.max_growth >= R.pages.growth,
                "recipe.pages: growth is a multiple of 64 KiB, max_growth not below it");

 public:
  static constexpr unsigned count = R.classes.count() + 1;  ///< classes 0 (none) .. count-1
  static constexpr std::size_t largest = R.classes.largest;

  struct entry {
    std::uint32_t size;        ///< bytes per block
    std::uint32_t span_pages;  ///< heap pages per span
    std::uint32_t capacity;    ///< blocks per span
    std::uint16_t batch;       ///< blocks moved at once between a thread and the centre
    std::uint16_t first_kept;  ///< freed blocks a thread may keep at first ...
    std::uint16_t max_kept;    ///< ... and at most
  };

  [[nodiscard]] static constexpr const entry& of(unsigned c) noexcept { return entries_[c]; }

  /// The class for a size; 0 when it is too large for any.
  [[nodiscard]] static constexpr unsigned index(std::size_t size) noexcept {
    return size <= largest ? R.classes.index(size) : 0;
  }

  /// The smallest class whose blocks are all aligned to `alignment`; 0 when there is none. Blocks of a span begin at a page,
  /// so a block is aligned when its size is a multiple of the alignment.
  [[nodiscard]] static constexpr unsigned index_aligned(std::size_t size, std::size_t alignment) noexcept {
    if (alignment > heap_page || size > largest) return 0;
    for (unsigned c = R.classes.index(size); c < count; ++c) {
      if (entries_[c].size % alignment == 0) return c;
    }
    return 0;
  }

 private:
  /// Blocks that all begin at a page have their first lines, and their hundredth, in the same few sets of the processor's cache.
  /// So blocks of several pages are longer by a line, and neighbours in a span begin at different ones.
  static constexpr std::size_t block_size(std::size_t size) { return size < 2 * heap_page ? size : size + cache_line; }

  static constexpr std::uint32_t span_pages_for(std::size_t size) {
    std::size_t bytes = align_up(std::max(R.spans.min_bytes, size * R.spans.min_blocks), heap_page);
    while (bytes % size > bytes / R.spans.max_waste_divisor) bytes += heap_page;
    return static_cast<std::uint32_t>(bytes / heap_page);
  }

  static constexpr auto make_entries() {
    constexpr auto& plan = R.thread_cache;
    std::array<entry, count> all{};
    for (unsigned c = 1; c < count; ++c) {
      const std::size_t size = block_size(R.classes.size(c));
      const std::uint32_t pages = span_pages_for(size);
      const std::size_t batch = std::clamp<std::size_t>(plan.batch_bytes / size, 1, plan.max_batch);
      const std::size_t kept = std::clamp(plan.max_bytes_per_class / size, batch, plan.max_blocks_per_class);
      all[c] = {.size = static_cast<std::uint32_t>(size),
                .span_pages = pages,
                .capacity = static_cast<std::uint32_t>(pages * heap_page / size),
                .batch = static_cast<std::uint16_t>(batch),
                .first_kept = static_cast<std::uint16_t>(std::clamp<std::size_t>(plan.first_bytes / size, 1, batch)),
                .max_kept = static_cast<std::uint16_t>(kept)};
    }
    return all;
  }

  static constexpr std::array<entry, count> entries_ = make_entries();
};

}  // namespace heapwright
