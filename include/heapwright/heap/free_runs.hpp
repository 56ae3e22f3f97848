// The free runs of a page heap, of two kinds: resident (contents in memory) and decommitted (given
// back or never touched). Finds, cuts and merges them, and keeps the records of all spans.
//
// Invariants: no two neighbouring runs are of one kind, but for the moment between remove or split
// and put or insert (unless the recipe wants no merging); the page map knows every span by its
// first and its last page; figures.free_resident and figures.free_decommitted are the sums of the
// lengths of the runs of each kind, and of the room of large blocks.
//
// Cutting a run needs a record for the second part. The caller reserves it before it cuts, so that
// nothing fails half way. Not thread-safe: the page heap's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include <heapwright/core/check.hpp>
#include <heapwright/heap/figures.hpp>
#include <heapwright/heap/metadata.hpp>
#include <heapwright/heap/page_map.hpp>
#include <heapwright/heap/page_supply.hpp>
#include <heapwright/heap/run_bins.hpp>

namespace heapwright {

/// From where in a run that is longer pages are taken.
enum class run_part : std::uint8_t { first, last };

template <const recipe& R, platform OS>
class free_runs {
  using supply = page_supply<R, OS>;

 public:
  // --- taking

  /// The first or last `pages` pages, aligned, of a run of this kind that has so many and `more`
  /// behind the first; null when none is long enough or there is no memory for records.
  [[nodiscard, gnu::noinline]] span* take(span_state kind, std::size_t pages, std::size_t alignment,
                                          std::size_t more = 0, run_part part = run_part::first) noexcept {
    const std::size_t slack = alignment / heap_page - 1;
    span* s = bins(kind).find(pages + slack + more);
    if (s == nullptr || !reserve(2)) return nullptr;
    remove(s);
    const std::uintptr_t begin = part == run_part::first
                                     ? align_up(address_of(s->start), alignment)
                                     : align_down(address_of(s->end()) - pages * heap_page, alignment);
    const std::size_t before = (begin - address_of(s->start)) / heap_page;
    if (before > 0) {
      span* const rest = split(s, before);
      put(s);
      s = rest;
    }
    if (s->pages > pages) put(split(s, pages));
    map_.set_ends(s);
    return s;
  }

  /// `pages` pages of neighbouring runs of both kinds, none of which is long enough alone; null
  /// when none are found among the longest.
  [[nodiscard, gnu::noinline, gnu::cold]] span* take_adjacent(std::size_t pages) noexcept {
    constexpr unsigned tries = 16;
    if (!reserve(1)) return nullptr;
    span* const first = resident_.find_long(tries, [&](span* s) { return first_of_adjacent(s, pages); });
    if (first == nullptr) return nullptr;
    remove(first);
    while (first->pages < pages) {
      span* const s = map_.span_at(first->end());
      remove(s);
      if (const std::size_t missing = pages - first->pages; s->pages > missing) put(split(s, missing));
      first->pages += s->pages;
      recycle(s);
    }
    if (first->pages > pages) put(split(first, pages));
    first->zeroed = false;
    map_.set_ends(first);
    return first;
  }

  /// Makes a span that is in use longer by `more` pages of its room, or of the free run behind it.
  /// `zeroed` says of these alone whether they read as zero. False: there are none; it is as it
  /// was.
  [[nodiscard]] bool extend(span* s, std::size_t more) noexcept {
    span* after = room_behind(s);
    const bool is_room = after != nullptr;
    if (!is_room) after = free_after(s);
    if (after == nullptr || after->pages < more || !reserve(1)) return false;
    is_room ? free_room(after) : remove(after);
    if (after->pages > more) is_room ? add_room(split(after, more)) : put(split(after, more));
    s->zeroed = after->zeroed;
    recycle(after);
    s->pages += more;
    map_.set_ends(s);
    return true;
  }

  /// What is behind the first `pages` pages of a span in use, decommitted already, becomes its
  /// room. A record has been reserved.
  void cut_room(span* s, std::size_t pages) noexcept {
    add_room(split(s, pages));
    map_.set_ends(s);
  }

  /// The room of a large block, or null.
  [[nodiscard]] span* room_behind(const span* s) const noexcept {
    span* const p = map_.span_at(s->end());
    return p != nullptr && p->state == span_state::room && p->start == s->end() ? p : nullptr;
  }

  /// Room is nobody's from now on; it is in no bin.
  void free_room(span* s) noexcept {
    rooms_.remove(s);
    figures_.free_decommitted.subtract(s->bytes());
  }

  /// The room of any block; null: none has one.
  [[nodiscard]] span* any_room() const noexcept { return rooms_.front(); }

  /// A run of this kind from the bin of the longest; null when there are none.
  [[nodiscard]] span* longest(span_state kind) noexcept { return bins(kind).longest(); }

  // --- giving

  /// A run that has become free, of the kind that its state says: merged with its neighbours.
  [[gnu::noinline]] void insert(span* s) noexcept { put(merge(s)); }

  /// Puts a run into its bin as it is.
  [[gnu::noinline]] void put(span* s) noexcept {
    map_.set_ends(s);
    bins(s->state).insert(s);
    count(s->state).add(s->bytes());
  }

  /// Takes a run out of its bin.
  [[gnu::noinline]] void remove(span* s) noexcept {
    bins(s->state).remove(s);
    invariant(count(s->state).get() >= s->bytes(), "a free run is longer than all free memory");
    count(s->state).subtract(s->bytes());
  }

  /// Cuts s after `pages` pages; returns the second part, in no bin. A record has been reserved.
  [[nodiscard, gnu::noinline]] span* split(span* s, std::size_t pages) noexcept {
    span* const rest = new_record();
    rest->start = s->start + pages * heap_page;
    rest->pages = s->pages - pages;
    rest->state = s->state;
    rest->zeroed = s->zeroed;
    s->pages = pages;
    return rest;
  }

  // --- whole pages of the system

  /// The system pages that a run covers. Where they are longer than heap pages, its first and last
  /// may reach into its neighbours: if those are free too, the whole page counts. begin >= end:
  /// there is none.
  struct address_range {
    std::uintptr_t begin, end;
  };

  [[nodiscard]] address_range system_pages(const span* s) const noexcept {
    return {first_whole_page(s), last_whole_page(s)};
  }

  // --- the page map

  /// Has ready what the map needs for so many bytes at p, or anywhere for null. False when the
  /// system has no memory.
  [[nodiscard]] bool reserve_map(const void* p, std::size_t bytes) noexcept {
    return leaves_.reserve(map_.leaves_for(p, bytes), figures_);
  }

  /// Makes room in the map for [p, p + bytes); reserved before.
  void cover(const void* p, std::size_t bytes) noexcept { map_.cover(p, bytes, leaves_); }

  // --- records

  /// Whether `n` records can be had without fail; splitting must not fail half way.
  [[nodiscard, gnu::noinline]] bool reserve(unsigned n) noexcept {
    while (spare_count_ < n) {
      void* const p = metadata_.allocate(sizeof(span), figures_);
      if (p == nullptr) return false;
      recycle(new (p) span);
    }
    return true;
  }

  [[nodiscard]] span* new_record() noexcept {
    span* const s = spare_;
    spare_ = s->next;
    --spare_count_;
    *s = span{};
    return s;
  }

  void recycle(span* s) noexcept {
    *s = span{};
    s->state = span_state::large;  // no neighbour merges with a record that is not in use
    s->next = spare_;
    spare_ = s;
    ++spare_count_;
  }

  /// Calls f(std::byte* begin, std::size_t bytes) for each range of memory that spans lie in side
  /// by side: spans may be shorter than the system's pages. Of a span s the first `part(s)` bytes
  /// count. Complexity: as page_map::for_each_span.
  template <class Part, class F>
  void for_each_range(Part part, F f) const {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
    const auto finish = [&] {
      if (begin != end) f(begin, static_cast<std::size_t>(end - begin));
    };
    map_.for_each_span([&](const span& s) {
      const std::size_t bytes = part(s);
      if (bytes == 0) return;
      if (s.start != end) {
        finish();
        begin = s.start;
      }
      end = s.start + bytes;
    });
    finish();
  }

  /// Returns the pages of all spans to the system, in use or not.
  void unmap_runs() noexcept {
    for_each_range([](const span& s) { return s.bytes(); },
                   [](std::byte* p, std::size_t bytes) { OS::unmap(p, bytes); });
  }

  /// Returns all records, the map included. Nothing here may be used afterwards.
  void unmap_records() noexcept {
    map_.unmap_all();
    leaves_.unmap_all();
    metadata_.unmap_all();
  }

  /// Zeroed memory for a record of another kind, never freed; null when the system has none.
  [[nodiscard]] void* allocate_metadata(std::size_t bytes) noexcept { return metadata_.allocate(bytes, figures_); }

  [[nodiscard]] page_map_of<R, OS>& map() noexcept { return map_; }
  [[nodiscard]] constexpr const page_map_of<R, OS>& map() const noexcept { return map_; }
  [[nodiscard]] heap_figures& figures() noexcept { return figures_; }
  [[nodiscard]] const heap_figures& figures() const noexcept { return figures_; }

 private:
  figure& count(span_state kind) noexcept {
    return kind == span_state::free_resident ? figures_.free_resident : figures_.free_decommitted;
  }

  void add_room(span* s) noexcept {
    s->state = span_state::room;
    map_.set_ends(s);
    rooms_.push_front(s);
    figures_.free_decommitted.add(s->bytes());
  }

  run_bins& bins(span_state kind) noexcept {
    if constexpr (R.hardening.separate_classes) {
      if (kind == span_state::free_large) return for_large_;
    }
    return kind == span_state::free_resident ? resident_ : decommitted_;
  }

  /// The first of neighbouring free runs around s that are together long enough, null when they are
  /// not.
  span* first_of_adjacent(span* s, std::size_t pages) const noexcept {
    std::size_t together = s->pages;
    span* first = s;
    for (span* p = free_before(first); p != nullptr && together < pages; p = free_before(first)) {
      first = p;
      together += p->pages;
    }
    for (span* p = free_after(s); p != nullptr && together < pages; p = free_after(p)) together += p->pages;
    return together >= pages ? first : nullptr;
  }

  /// The free run that ends where s begins, if any. An entry of the page map may be out of date
  /// where a range was unmapped; a record that really borders on this run says so itself.
  span* free_before(const span* s) const noexcept {
    span* const p = map_.span_at(s->start - heap_page);
    return p != nullptr && is_free(p) && p->end() == s->start ? p : nullptr;
  }

  span* free_after(const span* s) const noexcept {
    span* const p = map_.span_at(s->end());
    return p != nullptr && is_free(p) && p->start == s->end() ? p : nullptr;
  }

  static bool is_free(const span* s) noexcept {
    return s->state == span_state::free_resident || s->state == span_state::free_decommitted ||
           (R.hardening.separate_classes && s->state == span_state::free_large);
  }

  /// Joins a free run that is in no bin with free neighbours of its kind.
  span* merge(span* s) noexcept {
    if constexpr (!R.pages.coalesce) return s;
    span* const before = free_before(s);
    if (before != nullptr && before->state == s->state) s = join(before, s, before);
    span* const after = free_after(s);
    if (after != nullptr && after->state == s->state) s = join(s, after, after);
    return s;
  }

  span* join(span* first, span* second, span* linked) noexcept {
    remove(linked);
    first->pages += second->pages;
    first->zeroed = first->zeroed && second->zeroed;
    recycle(second);
    return first;
  }

  std::uintptr_t first_whole_page(const span* s) const noexcept {
    const std::uintptr_t begin = align_down(address_of(s->start), supply::grain());
    while (s != nullptr && address_of(s->start) > begin) s = free_before(s);
    return s != nullptr ? begin : begin + supply::grain();
  }

  std::uintptr_t last_whole_page(const span* s) const noexcept {
    const std::uintptr_t end = align_up(address_of(s->end()), supply::grain());
    while (s != nullptr && address_of(s->end()) < end) s = free_after(s);
    return s != nullptr ? end : end - supply::grain();
  }

  // What every heap touches together; the map's root, of which it touches one page, comes last.
  span* spare_ = nullptr;
  std::size_t spare_count_ = 0;
  metadata_memory<OS, R.hardening.random_places> metadata_;
  typename page_map_of<R, OS>::spare_leaves leaves_;
  heap_figures figures_{};
  run_bins resident_;
  run_bins decommitted_;
  span_list rooms_;
  struct none {};
  [[no_unique_address]] std::conditional_t<R.hardening.separate_classes, run_bins, none> for_large_;
  page_map_of<R, OS> map_;
};

}  // namespace heapwright
