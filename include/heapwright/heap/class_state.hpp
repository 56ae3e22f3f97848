// What a thread cache has of one size class: one line of the processor's cache.
//
//   byte   0   free_list      the fast path of malloc
//          8   deferred       the fast path of free
//         16   room           the same
//         20   limit          slow steps, from here on
//         24   attached
//         32   fresh
//         40   fresh_count
//         42   refill_count
//         44   flushed_long, use
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/layout.hpp>
#include <heapwright/heap/page_map.hpp>
#include <heapwright/heap/scavenger.hpp>

namespace heapwright {

/// See free_lists.hpp for what holds between the members.
struct alignas(cache_line) class_state {
  block* free_list;            ///< allocation pops from it
  block* deferred;             ///< freeing pushes onto it
  std::int32_t room;           ///< how many more deferred frees it takes
  std::int32_t limit;          ///< how many it takes at most
  span* attached;              ///< the span that this thread alone refills from, or null
  std::byte* fresh;            ///< the next block that nobody has touched, or null
  std::uint16_t fresh_count;   ///< how many there are from there on
  std::uint16_t refill_count;  ///< fresh blocks to ask for next time; doubles up to a batch
  std::uint8_t flushed_long;   ///< long blocks flushed for lack of room, and not asked for again; fades
  class_use use;               ///< what the scavenger knows
};

/// Where a thread cache has a class: bytes from its first one, so that no multiplication is needed.
/// 0: no class, or the smallest one for a size of zero.
enum class class_offset : std::size_t {};

static_assert(sizeof(class_state) == cache_line, "one class, one cache line");
static_assert(sizeof(class_state) == std::size_t{1} << class_shift, "a tag gives the offset of the class");

}  // namespace heapwright
