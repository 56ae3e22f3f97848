// A recipe describes a thread-caching heap completely. It is data, known when the heap is compiled, with a default for
// everything:
//
//   inline constexpr heapwright::recipe app = {.thread_cache = {.share_bytes = 256 * KiB}};
//   heapwright::heap<app, heapwright::linux_os> heap;
//
// What can be wrong with one is said by the static_asserts in class_table.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/size_classes.hpp>

namespace heapwright {

/// How many pages a span has: the fewest that satisfy all three.
struct span_length {
  std::size_t min_bytes;
  std::size_t min_blocks;
  std::size_t max_waste_divisor;  ///< of 16: at most 1/16 of a span may be left over behind its last block

  [[nodiscard]] constexpr bool is_valid() const noexcept { return min_blocks >= 1 && max_waste_divisor >= 1; }
};

/// A class's spans grow with it. Those of a class in light use are short: they come free sooner, for other classes. Those of one in heavy
/// use are long, and fewer: each costs some hundred instructions. Small blocks are in heavy use in most programs.
struct span_plan {
  std::size_t largest_cut = 32 * KiB;  ///< the last class cut from spans, a power of two; longer ones are pages
  std::size_t small = 128;             ///< blocks up to here are small
  span_length first_of_small{16 * KiB, 4, 16};
  span_length first{4 * KiB, 4, 8};
  std::size_t growth_divisor = 16;  ///< a span is about 1/16 of what its class has in use, between the first length ...
  span_length last{32 * KiB, 8, 16};       ///< ... and this one
  std::size_t kept_empty = 16 * KiB;       ///< of a class's spans, so much may stay whose blocks have all come back
  std::size_t worth_gathering = 64 * KiB;  ///< more than this has to be free in spans of a class that is thinly spread
};

/// A thread's private stock of freed blocks. Limits start small and grow while the thread keeps running into them; once those of
/// a kind together have reached the thread's share, at the cost of others. Short blocks have one share. Long ones have another
/// that grows with the program, as they are fewer, and dear to get; they are kept only where they are seen to be asked for again.
struct thread_cache_plan {
  std::size_t first_bytes = 2 * KiB;           ///< kept per class at first, beyond the share; longer blocks are long
  std::size_t share_bytes = 1 * MiB;           ///< of short blocks, and the least of long ones
  std::size_t long_divisor = 4;                ///< of long ones: a quarter of what is in use, divided by threads, ...
  std::size_t max_long_bytes = 32 * MiB;       ///< ... up to this
  std::size_t max_blocks_per_class = 2048;     ///< kept per class
  std::size_t max_bytes_per_class = 64 * KiB;  ///< kept per class of short blocks
  std::size_t max_bytes_per_long = 1 * MiB;    ///< kept per class of long blocks
  std::size_t max_parked_bytes = 128 * KiB;    ///< who has grown by no more leaves the stock to the next thread ...
  std::size_t max_parked = 8;                  ///< ... that many times
  std::size_t batch_bytes = 8 * KiB;           ///< moved between a thread and the centre at once ...
  std::size_t max_batch = 64;                  ///< ... but no more blocks than this
};

/// Pages between the heap and the operating system.
struct page_plan {
  std::size_t growth = 1 * MiB;         ///< least address space asked for at once
  std::size_t max_growth = 64 * MiB;    ///< a heap of n bytes asks for n / 8, up to this
  std::uint64_t purge_window_ms = 400;  ///< pages that stayed free this long are given back
  std::size_t max_free_resident =
      64 * MiB;                       ///< free memory beyond this and beyond what is in use is given back at once
  std::size_t headroom_divisor = 32;  ///< in memory may be 1/32 more than was ever in use at once
  std::size_t unmap_from = 1 * MiB;   ///< runs this long are unmapped, shorter ones keep their address space
};

struct recipe {
  size_class_plan classes{};
  span_plan spans{};
  thread_cache_plan thread_cache{};
  page_plan pages{};
};

inline constexpr recipe default_recipe{};

}  // namespace heapwright
