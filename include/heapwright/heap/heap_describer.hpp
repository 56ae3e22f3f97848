// Fills heap_places from the structures of a heap. It is a friend of those whose members it names;
// each number is a constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heapwright/heap/heap_core.hpp>
#include <heapwright/heap/heap_places.hpp>

// The standard leaves it to the compiler where the members of a class with bases lie. None of these
// has a virtual base, so GCC and Clang know.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace heapwright {

struct heap_describer {
  template <const recipe& R, platform OS>
  [[nodiscard]] static constexpr auto describe(const heap_core<R, OS>& heap) noexcept {
    described_heap<class_table<R>::count> all{.places = {.heap = &heap.shared_,
                                                         .page_map_root = heap.shared_.map().root_,
                                                         .link_key = R.hardening.sealed ? &link_key::value_ : nullptr},
                                              .class_sizes = {}};
    heap_places& p = all.places;
    describe_page_map<R, OS>(p);
    describe_spans(p);
    describe_classes<R>(p);
    describe_registry<R, OS>(p);
    describe_cache<R, OS>(p);
    if constexpr (class_table<R>::has_mixed) describe_mixed<R, OS>(p);
    if constexpr (R.hardening.quarantine_bytes != 0) describe_quarantine<R, OS>(p);
    if constexpr (R.hardening.sealed) describe_seals<R, OS>(p);
    for (unsigned c = 1; c < class_table<R>::count; ++c) all.class_sizes[c] = class_table<R>::of(c).size;
    return all;
  }

 private:
  /// A reader takes the field for that many bytes.
  template <class Field, std::size_t Bytes>
  static constexpr void has() noexcept {
    static_assert(sizeof(Field) == Bytes, "readers of process_record know this field by its length: raise its layout");
  }

  template <class Enumeration>
  static constexpr std::uint32_t number(Enumeration e) noexcept {
    return static_cast<std::uint32_t>(e);
  }

  template <const recipe& R, platform OS>
  static constexpr void describe_page_map(heap_places& p) noexcept {
    using map = page_map_of<R, OS>;
    using leaf = typename map::leaf;
    has<decltype(map::root_[0]), 8>();
    p.root_entries = map::root_entries;
    p.leaf_shift = map::leaf_shift;
    p.page_shift = heap_page_shift;
    p.tag_bytes = sizeof(typename map::tag_cell);
    p.leaf_spans = offsetof(leaf, spans);
    static_assert(offsetof(leaf, tags) == 0);
    if constexpr (class_table<R>::has_mixed) p.leaf_bits = offsetof(leaf, bits);
    p.class_shift = class_shift;
    p.class_mask = class_mask;
    p.owner_shift = owner_shift;
    p.large_tag = large_tag;
    p.mixed_tag = mixed_tag;
  }

  static constexpr void describe_spans(heap_places& p) noexcept {
    p.span_bytes = sizeof(span);
    p.span_start = offsetof(span, start);
    p.span_pages = offsetof(span, pages);
    p.span_free = offsetof(span, free);
    p.span_live = offsetof(span, live);
    p.span_carved = offsetof(span, carved);
    p.span_capacity = offsetof(span, capacity);
    p.span_owner = offsetof(span, owner);
    p.span_size_class = offsetof(span, size_class);
    p.span_state = offsetof(span, state);
    p.span_place = offsetof(span, place);
    p.span_guard_pages = offsetof(span, guard_pages);
    p.span_offset = offsetof(span, offset);
    static_assert(offsetof(span, free) == offsetof(span, slack) && offsetof(block, link) == 0);
    has<decltype(span::pages), 8>(), has<decltype(span::slack), 8>();
    has<decltype(span::live), 4>(), has<decltype(span::carved), 4>(), has<decltype(span::capacity), 4>();
    has<decltype(span::owner), 4>(), has<decltype(span::size_class), 1>(), has<decltype(span::state), 1>();
    has<decltype(span::place), 1>(), has<decltype(span::guard_pages), 1>(), has<decltype(span::offset), 2>();
    p.state_free_resident = number(span_state::free_resident);
    p.state_free_decommitted = number(span_state::free_decommitted);
    p.state_cut = number(span_state::cut);
    p.state_large = number(span_state::large);
    p.state_mixed = number(span_state::mixed);
    p.state_free_large = number(span_state::free_large);
    p.state_retired = number(span_state::retired);
    p.state_guard = number(span_state::guard);
    p.state_room = number(span_state::room);
    p.place_exhausted = number(span_place::exhausted);
    p.place_listed = number(span_place::listed);
    p.place_attached = number(span_place::attached);
  }

  template <const recipe& R>
  static constexpr void describe_classes(heap_places& p) noexcept {
    p.classes_cut_end = class_table<R>::cut_end;
    p.classes_end = class_table<R>::count;
  }

  template <const recipe& R, platform OS>
  static constexpr void describe_registry(heap_places& p) noexcept {
    using shared = shared_heap<R, OS>;
    using registry = cache_registry<R, OS>;
    constexpr std::size_t begin = offsetof(shared, caches_);
    p.caches_open = begin + offsetof(registry, open_);
    p.caches_unused = begin + offsetof(registry, unused_);
    p.caches_borrowed = begin + offsetof(registry, borrowed_);
  }

  template <const recipe& R, platform OS>
  static constexpr void describe_cache(heap_places& p) noexcept {
    using cache = thread_cache<R, OS>;
    has<decltype(cache::parked_at), 8>(), has<decltype(cache::id), 4>(), has<decltype(class_state::fresh_count), 2>();
    has<decltype(class_state::room), 4>(), has<decltype(class_state::limit), 4>();
    p.cache_registered = offsetof(cache, next) - offsetof(registered_cache, next);
    p.cache_next = offsetof(cache, next);
    p.cache_parked_at = offsetof(cache, parked_at);
    p.cache_id = offsetof(cache, id);
    p.cache_classes = offsetof(cache, of_);
    p.cache_class_bytes = sizeof(class_state);
    p.list_free = offsetof(class_state, free_list);
    p.list_deferred = offsetof(class_state, deferred);
    p.list_room = offsetof(class_state, room);
    p.list_limit = offsetof(class_state, limit);
    p.list_fresh = offsetof(class_state, fresh);
    p.list_fresh_count = offsetof(class_state, fresh_count);
    static_assert(sizeof(remote_inbox) == 8);
    p.cache_inbox = offsetof(cache, inbox_);
    p.inbox_address_bits = remote_inbox::address_bits;
    static_assert(sizeof(remote_outbox) == remote_outbox::places * sizeof(remote_batch));
    has<decltype(remote_batch::tag), 4>(), has<decltype(remote_batch::count), 4>();
    p.cache_outbox = offsetof(cache, outbox_);
    p.outbox_batches = remote_outbox::places;
    p.batch_bytes = sizeof(remote_batch);
    p.batch_tag = offsetof(remote_batch, tag);
    p.batch_count = offsetof(remote_batch, count);
    p.batch_first = offsetof(remote_batch, first);
  }

  template <const recipe& R, platform OS>
  static constexpr void describe_mixed(heap_places& p) noexcept {
    using cache = thread_cache<R, OS>;
    using shared = shared_heap<R, OS>;
    using mixed = mixed_spans<R, OS>;
    constexpr std::size_t begin = offsetof(shared, mixed_), tail = begin + offsetof(mixed, tail_);
    static_assert(sizeof(mixed_bits::words) == 16 && offsetof(mixed_bits::words, begins) == 0);
    p.mixed_span_bytes = mixed_bits::span_bytes;
    p.mixed_grain = mixed_bits::grain;
    p.mixed_bits_bytes = sizeof(mixed_bits);
    p.mixed_words = offsetof(mixed_bits, words_);
    p.mixed_waiting = begin + offsetof(mixed, waiting_);
    p.mixed_tail_begin = tail + offsetof(decltype(mixed::tail_), begin);
    p.mixed_tail_end = tail + offsetof(decltype(mixed::tail_), end);
    p.cache_strip_begin = offsetof(cache, strip_) + offsetof(mixed_strip, begin_);
    p.cache_strip_end = offsetof(cache, strip_) + offsetof(mixed_strip, end_);
  }

  template <const recipe& R, platform OS>
  static constexpr void describe_quarantine(heap_places& p) noexcept {
    using cache = thread_cache<R, OS>;
    using quarantine = used_quarantine<R, OS>;
    using held_long = typename quarantine::held_long;
    static_assert(sizeof(quarantine::held_) == class_table<R>::cut_end * quarantine::most * 8 &&
                  sizeof(quarantine::long_) == quarantine::most_long * sizeof(held_long) &&
                  offsetof(held_long, b) == 0);
    p.cache_quarantine = offsetof(cache, quarantine_) + offsetof(quarantine, held_);
    p.quarantine_per_class = quarantine::most;
    p.cache_quarantine_long = offsetof(cache, quarantine_) + offsetof(quarantine, long_);
    p.quarantine_longs = quarantine::most_long;
    p.quarantine_long_bytes = sizeof(held_long);
  }

  template <const recipe& R, platform OS>
  static constexpr void describe_seals(heap_places& p) noexcept {
    using shared = shared_heap<R, OS>;
    using keys = seal_keys<OS>;
    using empty = empty_blocks<R, OS>;
    using record = typename empty::record;
    has<decltype(keys::newest_), 8>(), has<decltype(keys::older_count_), 8>(), has<decltype(record::state), 1>();
    static_assert(offsetof(record, state) == 0);
    p.seal_bytes = block_seal::bytes;
    p.seal_key = offsetof(shared, keys_) + offsetof(keys, newest_);
    p.seal_older_keys = offsetof(shared, keys_) + offsetof(keys, older_);
    p.seal_older_count = offsetof(shared, keys_) + offsetof(keys, older_count_);
    p.empty_begin = offsetof(shared, empty_) + offsetof(empty, begin_);
    p.empty_records = offsetof(shared, empty_) + offsetof(empty, records_);
    p.empty_places = empty::places;
    p.empty_place_bytes = empty::place_bytes;
    p.empty_record_bytes = sizeof(record);
  }
};

}  // namespace heapwright

#pragma GCC diagnostic pop
