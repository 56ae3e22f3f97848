// Where the parts of a heap lie, as numbers: what a debugger needs to go from an address to its
// block without debugging information, in a live process and in a core file.
//
// heap_describer.hpp fills it from the structures themselves, at compile time. It has addresses, so
// that the linker puts it where the loader writes: what is only read is not in a core file.
#pragma once

#include <cstdint>

#include <heapwright/core/language.hpp>

namespace heapwright {

/// Three addresses, and numbers of 32 bits, so that a reader knows the structure by the order of
/// its names. Of what the recipe does not have, a field is `absent`.
struct heap_places {
  static constexpr std::uint32_t absent = ~std::uint32_t{0};  ///< no place is there

  const void* heap;           ///< what a place that is said to be "from the heap" counts from
  const void* page_map_root;  ///< its first entry
  const void* link_key;       ///< 8 bytes, the key of scrambled links; null: links are addresses (block_links.hpp)

  // The page map. An entry of the root is the address of a leaf's tags less the bytes of all tags
  // before them.
  std::uint32_t root_entries = absent;  ///< 8 bytes each
  std::uint32_t leaf_shift = absent;    ///< address bits below the index of the root
  std::uint32_t page_shift = absent;    ///< address bits below the page
  std::uint32_t tag_bytes = absent;     ///< of a page's tag
  std::uint32_t leaf_spans = absent;    ///< the pointers to spans, from the tags of a leaf
  std::uint32_t leaf_bits = absent;     ///< the bits of mixed spans, from the tags of a leaf

  std::uint32_t class_shift = absent;  ///< of the class in a tag
  std::uint32_t class_mask = absent;   ///< with `class_shift`
  std::uint32_t owner_shift = absent;  ///< of the owner in a tag: the id of a thread cache
  std::uint32_t large_tag = absent;    ///< of the page that a large block begins in
  std::uint32_t mixed_tag = absent;    ///< of the pages of a mixed span

  // Of a span, from its record.
  std::uint32_t span_bytes = absent;        ///< of the record
  std::uint32_t span_start = absent;        ///< 8 bytes: where its pages begin
  std::uint32_t span_pages = absent;        ///< 8 bytes
  std::uint32_t span_free = absent;         ///< 8 bytes: first free block; of a large one: the slack
  std::uint32_t span_live = absent;         ///< 4 bytes: blocks outside
  std::uint32_t span_carved = absent;       ///< 4 bytes: blocks that were given out once
  std::uint32_t span_capacity = absent;     ///< 4 bytes: blocks
  std::uint32_t span_owner = absent;        ///< 4 bytes: owner bits, as in a tag
  std::uint32_t span_size_class = absent;   ///< 1 byte
  std::uint32_t span_state = absent;        ///< 1 byte
  std::uint32_t span_place = absent;        ///< 1 byte
  std::uint32_t span_guard_pages = absent;  ///< 1 byte
  std::uint32_t span_offset = absent;       ///< 2 bytes: of the first block in the span

  // The values of span::state and span::place.
  std::uint32_t state_free_resident = absent;
  std::uint32_t state_free_decommitted = absent;
  std::uint32_t state_cut = absent;
  std::uint32_t state_large = absent;
  std::uint32_t state_mixed = absent;
  std::uint32_t state_free_large = absent;
  std::uint32_t state_retired = absent;
  std::uint32_t state_guard = absent;
  std::uint32_t state_room = absent;
  std::uint32_t place_exhausted = absent;
  std::uint32_t place_listed = absent;
  std::uint32_t place_attached = absent;

  // Mixed spans. Bits come in pairs of words of 64: which grains begin a chunk, which of these are
  // outside.
  std::uint32_t mixed_span_bytes = absent;
  std::uint32_t mixed_grain = absent;       ///< bytes for each bit
  std::uint32_t mixed_bits_bytes = absent;  ///< of the bits of one span
  std::uint32_t mixed_words = absent;       ///< the pairs, from the bits of a span
  std::uint32_t mixed_waiting = absent;     ///< 8 bytes, from the heap: blocks that came back and wait
  std::uint32_t mixed_tail_begin = absent;  ///< 8 bytes, from the heap
  std::uint32_t mixed_tail_end = absent;    ///< 8 bytes, from the heap

  // Classes: from 1 on, page-run classes last.
  std::uint32_t classes_cut_end = absent;  ///< the first page-run class
  std::uint32_t classes_end = absent;

  // The registry of thread caches, from the heap. Pointers to a cache point to `cache_registered`
  // in it.
  std::uint32_t caches_open = absent;      ///< 8 bytes: the first cache that a thread uses
  std::uint32_t caches_unused = absent;    ///< 8 bytes: the first of those that no thread uses
  std::uint32_t caches_borrowed = absent;  ///< 8 bytes: the one that threads without a cache borrow

  // Of a thread cache.
  std::uint32_t cache_registered = absent;
  std::uint32_t cache_next = absent;          ///< 8 bytes: the next cache of the registry's list
  std::uint32_t cache_parked_at = absent;     ///< 8 bytes: 0 if it is not parked
  std::uint32_t cache_id = absent;            ///< 4 bytes
  std::uint32_t cache_classes = absent;       ///< the lists of class 0
  std::uint32_t cache_class_bytes = absent;   ///< from one class to the next
  std::uint32_t list_free = absent;           ///< 8 bytes, from a class: first of the free list
  std::uint32_t list_deferred = absent;       ///< 8 bytes: first of the deferred frees
  std::uint32_t list_room = absent;           ///< 4 bytes: how many more deferred frees it takes
  std::uint32_t list_limit = absent;          ///< 4 bytes: how many it takes at most
  std::uint32_t list_fresh = absent;          ///< 8 bytes: the next fresh block
  std::uint32_t list_fresh_count = absent;    ///< 2 bytes: how many there are from there on
  std::uint32_t cache_inbox = absent;         ///< 8 bytes for each class: the address of a block, and a count
  std::uint32_t inbox_address_bits = absent;  ///< of the address
  std::uint32_t cache_outbox = absent;        ///< batches of remote frees
  std::uint32_t outbox_batches = absent;
  std::uint32_t batch_bytes = absent;
  std::uint32_t batch_tag = absent;          ///< 4 bytes: the tag of its blocks
  std::uint32_t batch_count = absent;        ///< 4 bytes: how many blocks
  std::uint32_t batch_first = absent;        ///< 8 bytes: first block
  std::uint32_t cache_strip_begin = absent;  ///< 8 bytes: the next block of the strip
  std::uint32_t cache_strip_end = absent;    ///< 8 bytes

  // The quarantine of a thread cache.
  std::uint32_t cache_quarantine = absent;       ///< blocks of class 0, 8 bytes each
  std::uint32_t quarantine_per_class = absent;   ///< places
  std::uint32_t cache_quarantine_long = absent;  ///< page-run blocks
  std::uint32_t quarantine_longs = absent;       ///< places
  std::uint32_t quarantine_long_bytes = absent;  ///< of a place; the block comes first

  // Seals, and the keys that they are read with, from the heap.
  std::uint32_t seal_bytes = 0;  ///< at the end of each block
  std::uint32_t seal_key = absent;
  std::uint32_t seal_older_keys = absent;
  std::uint32_t seal_older_count = absent;  ///< 8 bytes

  // Blocks of no bytes, from the heap.
  std::uint32_t empty_begin = absent;    ///< 8 bytes: where the places begin, or 0
  std::uint32_t empty_records = absent;  ///< 8 bytes: where the records begin
  std::uint32_t empty_places = absent;
  std::uint32_t empty_place_bytes = absent;
  std::uint32_t empty_record_bytes = absent;  ///< the state comes first: 1 byte, a seal_state
};

/// The places of a heap with so many classes. Only the pages of the library that the loader has
/// written to are in the memory of each process, so there is no more of it than need be.
template <unsigned Classes>
struct described_heap {
  heap_places places;
  std::uint32_t class_sizes[Classes];  ///< bytes of a block of each class, from class 0 on
};

}  // namespace heapwright
