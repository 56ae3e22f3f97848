// The page heap hands out runs of pages and takes them back; everything that the heap gets from the system or returns to
// it passes here. One lock guards all of it.
//
// Free runs are of two kinds, each in bins of its own: resident (contents still in memory, cheap to use again) and returned
// (given back to the system or never touched; the next touch costs a page fault). Neighbours of one kind are always
// merged. A request takes a resident run if one fits, so that memory in use does not grow while there is some to spare.
//
// Peak. What a program has in use at its peak must be in memory then; that much costs nothing at other times. So free runs that
// are too short for a request stay in memory as long as all together does not exceed the most ever in use, and a little.
//
// Giving back. In each window of time the lowest level of free resident memory is noted: that much was not needed all
// window long, and it is what is given back at the window's end. A program that keeps using its memory keeps it; one
// that has gone quiet has returned it all after two windows. When more is free than in use, and more than a fixed amount, the
// excess is given back at once, so that a program that frees all and sleeps does not keep it.
//
// Both are guesses ahead of time. What was given back so and then needed again raises both limits for a while, so that a
// program whose blocks do not fit the gaps is not made to fault for ever.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <heapwright/core/check.hpp>
#include <heapwright/heap/figures.hpp>
#include <heapwright/heap/metadata.hpp>
#include <heapwright/heap/page_map.hpp>
#include <heapwright/heap/run_bins.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

template <recipe R, platform OS>
class page_heap {
  using map_type = page_map<OS>;
  static constexpr auto relaxed = std::memory_order_relaxed;

 public:
  using lock_type = lock<OS>;

  /// A run of at least `pages` heap pages for `use` (cut or large), its start aligned to `alignment` bytes (a power of two,
  /// heap pages and up). Null when the system has no memory. `zeroed` of the result says whether it reads as zero.
  [[nodiscard]] span* allocate(std::size_t pages, std::size_t alignment, span_state use) noexcept {
    holding guard(lock_);
    const std::uint64_t returned = figures_.free_returned.load(relaxed);
    span* s = take(pages, alignment);
    if (s != nullptr) note_missed(returned);
    if (s == nullptr && grow(pages, alignment)) s = take(pages, alignment);
    if (s == nullptr && give_back_everything() > 0 && grow(pages, alignment)) s = take(pages, alignment);
    if (s == nullptr) return nullptr;
    s->state = use;
    s->live = s->carved = 0;
    s->free = nullptr;
    count(use).fetch_add(s->bytes(), relaxed);
    if (use == span_state::large) map_.set_tag(s->start, large_tag);
    stay_below_peak();
    return s;
  }

  /// Takes back what allocate returned. The tags of a cut span have been cleared by the caller.
  void release(span* s) noexcept {
    holding guard(lock_);
    release_held(s);
  }

  /// Makes a large block longer or shorter where it is. False: it stays as it was.
  [[nodiscard]] bool try_resize(span* s, std::size_t pages) noexcept {
    holding guard(lock_);
    return pages <= s->pages ? shrink(s, pages) : extend(s, pages);
  }

  /// Makes a large block longer by letting the system move its pages elsewhere. False: it stays as it was.
  [[nodiscard]] bool try_remap(span* s, std::size_t pages) noexcept {
    const std::size_t bytes = os_pages<OS>::rounded(pages * heap_page);
    if (!is_aligned(s->start, OS::page_size()) || s->bytes() % OS::page_size() != 0) return false;
    if (bytes <= s->bytes() || bytes > largest_move) return false;
    holding guard(lock_);
    // The page map must not run out of memory after the move.
    if (!map_.reserve(map_.leaves_for(nullptr, bytes), figures_.metadata)) return false;
    void* const moved = OS::remap(s->start, s->bytes(), bytes);
    if (moved == nullptr) return false;
    map_.set_tag(s->start, 0);
    map_.clear_ends(s);
    count_mapped(bytes - s->bytes());
    figures_.large.fetch_add(bytes - s->bytes(), relaxed);
    s->start = static_cast<std::byte*>(moved);
    s->pages = bytes / heap_page;
    s->zeroed = false;
    map_.cover(moved, bytes);
    map_.set_ends(s);
    map_.set_tag(s->start, large_tag);
    return true;
  }

  /// Makes a large block read as zero by giving its contents back. False: the system refused; contents are as they were.
  [[nodiscard]] static bool clear(span* s) noexcept {
    const std::uintptr_t first = align_up(address_of(s->start), OS::page_size());
    const std::uintptr_t last = align_down(address_of(s->end()), OS::page_size());
    if (first >= last || !OS::discard(reinterpret_cast<void*>(first), last - first)) return false;
    std::memset(s->start, 0, first - address_of(s->start));
    std::memset(reinterpret_cast<void*>(last), 0, address_of(s->end()) - last);
    s->zeroed = true;
    return true;
  }

  /// Gives back what was not needed for a whole window of time, if one has passed. Cheap otherwise; called now and then from
  /// the slow steps of malloc and free. Never waits for the lock.
  void tick() noexcept {
    const std::uint64_t now = OS::milliseconds();
    if (now < window_end_.load(relaxed)) return;
    if (!lock_.try_acquire()) return;
    if (now >= window_end_.load(relaxed)) {
      unmap_long_runs(purge(low_water_), R.pages.unmap_from);
      missed_ -= missed_ / 8;
      given_early_ = 0;
      low_water_ = figures_.free_resident.load(relaxed);
      window_end_.store(now + window_ms(), relaxed);
    }
    lock_.release();
  }

  /// Gives all free memory back to the system. Returns the bytes given back.
  std::size_t trim() noexcept {
    holding guard(lock_);
    return give_back_everything();
  }

  /// Milliseconds that free memory is kept; instead of the recipe's.
  void set_window(std::uint64_t ms) noexcept {
    window_ms_plus_one_.store(ms + 1, relaxed);
    window_end_.store(0, relaxed);
  }

  [[nodiscard]] std::uint64_t window_ms() const noexcept {
    const std::uint64_t set = window_ms_plus_one_.load(relaxed);
    return set == 0 ? R.pages.purge_window_ms : set - 1;
  }

  /// Zeroed memory for a record of the heap's own, never freed; null when the system has none.
  [[nodiscard]] void* allocate_metadata(std::size_t bytes) noexcept {
    holding guard(lock_);
    return metadata_.allocate(bytes, figures_);
  }

  [[nodiscard]] map_type& map() noexcept { return map_; }
  [[nodiscard]] constexpr const map_type& map() const noexcept { return map_; }
  [[nodiscard]] heap_figures& figures() noexcept { return figures_; }
  [[nodiscard]] const heap_figures& figures() const noexcept { return figures_; }
  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::size_t worth_a_call = 256 * KiB;  ///< less is not given back ahead of its time
  static constexpr std::size_t largest_move = 64 * GiB;  ///< bounds what is set aside for the page map

  heap_figures::figure& count(span_state state) noexcept {
    switch (state) {
      case span_state::cut: return figures_.spans;
      case span_state::large: return figures_.large;
      case span_state::free_resident: return figures_.free_resident;
      default: return figures_.free_returned;
    }
  }

  run_bins& bins(span_state kind) noexcept { return kind == span_state::free_resident ? resident_ : returned_; }

  // --- taking

  span* take(std::size_t pages, std::size_t alignment) noexcept {
    span* s = take_from(span_state::free_resident, pages, alignment);
    if (s == nullptr) s = take_adjacent(pages, alignment);
    if (s == nullptr) s = take_from(span_state::free_returned, pages, alignment);
    low_water_ = std::min(low_water_, figures_.free_resident.load(relaxed));
    return s;
  }

  /// A long request from neighbouring runs of both kinds, none of which is long enough alone.
  span* take_adjacent(std::size_t pages, std::size_t alignment) noexcept {
    constexpr unsigned tries = 16;
    if (pages * heap_page < worth_a_call || alignment > heap_page || !reserve_records(1)) return nullptr;
    span* const first = resident_.find_long(tries, [&](span* s) { return first_of_adjacent(s, pages); });
    if (first == nullptr) return nullptr;
    unlink(first);
    while (first->pages < pages) {
      span* const s = map_.span_at(first->end());
      unlink(s);
      if (const std::size_t missing = pages - first->pages; s->pages > missing) link(split(s, missing));
      first->pages += s->pages;
      recycle(s);
    }
    if (first->pages > pages) link(split(first, pages));
    first->zeroed = false;
    map_.set_ends(first);
    return first;
  }

  /// The first of neighbouring free runs around s that are together long enough, null when they are not.
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

  span* take_from(span_state kind, std::size_t pages, std::size_t alignment) noexcept {
    const std::size_t slack = alignment / heap_page - 1;
    span* s = bins(kind).find(pages + slack);
    if (s == nullptr || !reserve_records(2)) return nullptr;
    unlink(s);
    const std::size_t before = (align_up(address_of(s->start), alignment) - address_of(s->start)) / heap_page;
    if (before > 0) {
      span* const rest = split(s, before);
      link(s);
      s = rest;
    }
    if (s->pages > pages) link(split(s, pages));
    map_.set_ends(s);
    return s;
  }

  /// Cuts s after `pages` pages; returns the second part, in no bin. A record has been reserved.
  span* split(span* s, std::size_t pages) noexcept {
    span* const rest = new_record();
    rest->start = s->start + pages * heap_page;
    rest->pages = s->pages - pages;
    rest->state = s->state;
    rest->zeroed = s->zeroed;
    s->pages = pages;
    return rest;
  }

  // --- giving

  void release_held(span* s) noexcept {
    if (s->state == span_state::large) map_.set_tag(s->start, 0);
    count(s->state).fetch_sub(s->bytes(), relaxed);
    s->state = span_state::free_resident;
    s->zeroed = false;
    link(merge(s));
    const std::uint64_t keep = std::max<std::uint64_t>(R.pages.max_free_resident, in_use()) + missed_;
    const std::uint64_t free = figures_.free_resident.load(relaxed);
    if (free > keep + worth_a_call) {
      given_early_ += purge(free - keep);
      unmap_long_runs(free - keep, R.pages.max_free_resident);
    }
  }

  /// Puts a free run into its bin.
  void link(span* s) noexcept {
    map_.set_ends(s);
    bins(s->state).insert(s);
    count(s->state).fetch_add(s->bytes(), relaxed);
  }

  void unlink(span* s) noexcept {
    bins(s->state).remove(s);
    invariant(count(s->state).load(relaxed) >= s->bytes(), "a free run is longer than all free memory");
    count(s->state).fetch_sub(s->bytes(), relaxed);
  }

  /// The free run that ends where s begins, if any. An entry of the page map may be out of date where a range was unmapped; a
  /// record that really borders on this run says so itself.
  span* free_before(const span* s) const noexcept {
    span* const p = map_.span_at(s->start - heap_page);
    return p != nullptr && is_free(p) && p->end() == s->start ? p : nullptr;
  }

  span* free_after(const span* s) const noexcept {
    span* const p = map_.span_at(s->end());
    return p != nullptr && is_free(p) && p->start == s->end() ? p : nullptr;
  }

  static bool is_free(const span* s) noexcept {
    return s->state == span_state::free_resident || s->state == span_state::free_returned;
  }

  /// Joins a free run that is in no bin with free neighbours of its kind.
  span* merge(span* s) noexcept {
    span* const before = free_before(s);
    if (before != nullptr && before->state == s->state) s = join(before, s, before);
    span* const after = free_after(s);
    if (after != nullptr && after->state == s->state) s = join(s, after, after);
    return s;
  }

  span* join(span* first, span* second, span* linked) noexcept {
    unlink(linked);
    first->pages += second->pages;
    first->zeroed = first->zeroed && second->zeroed;
    recycle(second);
    return first;
  }

  bool shrink(span* s, std::size_t pages) noexcept {
    if (pages == s->pages) return true;
    if (!reserve_records(1)) return false;
    span* const rest = split(s, pages);
    map_.set_ends(s);
    release_held(rest);
    return true;
  }

  bool extend(span* s, std::size_t pages) noexcept {
    const std::size_t more = pages - s->pages;
    span* const after = free_after(s);
    if (after == nullptr || after->pages < more || !reserve_records(1)) return false;
    unlink(after);
    if (after->pages > more) link(split(after, more));
    s->pages = pages;
    s->zeroed = false;
    map_.set_ends(s);
    figures_.large.fetch_add(more * heap_page, relaxed);
    low_water_ = std::min(low_water_, figures_.free_resident.load(relaxed));
    recycle(after);
    stay_below_peak();
    return true;
  }

  // --- to and from the system

  bool grow(std::size_t pages, std::size_t alignment) noexcept {
    const std::size_t need = os_pages<OS>::rounded(pages * heap_page + alignment - heap_page);
    const std::size_t share = std::clamp(figures_.mapped.load(relaxed) / 8, std::uint64_t{R.pages.growth}, std::uint64_t{R.pages.max_growth});
    const std::size_t comfortable = need < R.pages.growth ? os_pages<OS>::rounded(share) : need;
    return map_more(comfortable) || (comfortable > need && map_more(need));
  }

  bool map_more(std::size_t bytes) noexcept {
    if (!reserve_records(1)) return false;
    void* const fresh = OS::map(bytes);
    if (fresh == nullptr) return false;
    if (!map_.reserve(map_.leaves_for(fresh, bytes), figures_.metadata)) {
      OS::unmap(fresh, bytes);
      return false;
    }
    map_.cover(fresh, bytes);
    span* const s = new_record();
    s->start = static_cast<std::byte*>(fresh);
    s->pages = bytes / heap_page;
    s->state = span_state::free_returned;
    s->zeroed = true;
    count_mapped(bytes);
    figures_.mappings.fetch_add(1, relaxed);
    link(merge(s));
    return true;
  }

  void count_mapped(std::size_t bytes) noexcept {
    const std::uint64_t mapped = figures_.mapped.fetch_add(bytes, relaxed) + bytes;
    if (mapped > figures_.mapped_peak.load(relaxed)) figures_.mapped_peak.store(mapped, relaxed);
  }

  std::size_t purge(std::size_t bytes) noexcept {
    std::size_t done = 0;
    while (done < bytes) {
      span* s = resident_.longest();
      if (s == nullptr) break;
      unlink(s);
      // Of a run much longer than what is to go, the front stays: it is what the next requests are cut from.
      const std::size_t pages = align_up(bytes - done, std::max(OS::page_size(), 16 * heap_page)) / heap_page;
      if (s->pages > pages && reserve_records(1)) {
        span* const tail = split(s, s->pages - pages);
        link(s);
        s = tail;
      }
      const std::size_t gone = give_back(s);
      if (gone == 0) break;
      done += gone;
    }
    return done;
  }

  [[nodiscard]] std::uint64_t in_use() const noexcept {
    return figures_.spans.load(relaxed) + figures_.large.load(relaxed);
  }

  /// After memory has come into use: gives back what free memory beside it would put above the peak.
  void stay_below_peak() noexcept {
    const std::uint64_t used = in_use();
    most_in_use_ = std::max(most_in_use_, used);
    const std::uint64_t limit = most_in_use_ + most_in_use_ / R.pages.headroom_divisor + missed_;
    const std::uint64_t resident = used + figures_.free_resident.load(relaxed);
    if (resident > limit + worth_a_call) given_early_ += purge(resident - limit);
  }

  /// After a request has been served: memory that was given back early and is needed again should have stayed.
  void note_missed(std::uint64_t returned_before) noexcept {
    const std::uint64_t returned = figures_.free_returned.load(relaxed);
    if (returned >= returned_before) return;
    const std::uint64_t missed = std::min(returned_before - returned, given_early_);
    given_early_ -= missed;
    missed_ += missed;
  }

  std::size_t give_back_everything() noexcept {
    const std::size_t done = purge(SIZE_MAX - MiB);
    low_water_ = 0;
    return done + unmap_long_runs(SIZE_MAX, R.pages.unmap_from);
  }

  /// Returns address space, up to about `bytes` of it. Shorter runs keep theirs: each hole costs the system a mapping.
  std::size_t unmap_long_runs(std::size_t bytes, std::size_t shortest) noexcept {
    std::size_t done = 0;
    while (done < bytes) {
      span* const s = returned_.longest();
      if (s == nullptr || s->bytes() < shortest) break;
      const std::size_t length = s->bytes();
      unlink(s);
      if (!unmap(s)) {
        link(s);
        break;
      }
      done += length;
    }
    return done;
  }

  /// Returns a resident run that is in no bin, its address space kept; the bytes returned. 0: the system refused, or the run has no whole system
  /// page; it is resident and in its bin again then.
  std::size_t give_back(span* s) noexcept {
    const std::size_t bytes = s->bytes();
    const std::uintptr_t first = first_whole_page(s);
    const std::uintptr_t last = last_whole_page(s);
    if (first >= last || !OS::discard(reinterpret_cast<void*>(first), last - first)) {
      link(s);
      return 0;
    }
    figures_.returned_total.fetch_add(bytes, relaxed);
    s->state = span_state::free_returned;
    s->zeroed = first <= address_of(s->start) && last >= address_of(s->end());
    link(merge(s));
    return bytes;
  }

  /// Where system pages are longer than heap pages, a run's first and last page may reach into its neighbours; if those are
  /// free too, the whole page can go.
  std::uintptr_t first_whole_page(const span* s) const noexcept {
    const std::uintptr_t begin = align_down(address_of(s->start), OS::page_size());
    while (s != nullptr && address_of(s->start) > begin) s = free_before(s);
    return s != nullptr ? begin : begin + OS::page_size();
  }

  std::uintptr_t last_whole_page(const span* s) const noexcept {
    const std::uintptr_t end = align_up(address_of(s->end()), OS::page_size());
    while (s != nullptr && address_of(s->end()) < end) s = free_after(s);
    return s != nullptr ? end : end - OS::page_size();
  }

  bool unmap(span* s) noexcept {
    const std::size_t bytes = s->bytes();
    const std::size_t page = OS::page_size();
    if (!is_aligned(s->start, page) || bytes % page != 0) return false;
    if (!OS::unmap(s->start, bytes)) return false;
    figures_.mapped.fetch_sub(bytes, relaxed);
    map_.clear_ends(s);
    recycle(s);
    return true;
  }

  // --- records

  /// Whether `n` records can be had without fail; splitting must not fail half way.
  bool reserve_records(unsigned n) noexcept {
    while (spare_count_ < n) {
      void* const p = metadata_.allocate(sizeof(span), figures_);
      if (p == nullptr) return false;
      recycle(new (p) span);
    }
    return true;
  }

  span* new_record() noexcept {
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

  lock_type lock_;
  map_type map_;
  run_bins resident_;
  run_bins returned_;
  span* spare_ = nullptr;
  std::size_t spare_count_ = 0;
  metadata_memory<OS> metadata_;
  std::uint64_t low_water_ = 0;     ///< least free_resident since the window began
  std::uint64_t most_in_use_ = 0;
  std::uint64_t given_early_ = 0;   ///< bytes given back ahead of a window's end, and not needed since
  std::uint64_t missed_ = 0;        ///< bytes given back early that were needed again; fades. So much more may stay
  std::atomic<std::uint64_t> window_ms_plus_one_{0};  ///< 0: the recipe's; so that a heap is all zero and costs no file pages
  std::atomic<std::uint64_t> window_end_{0};
  heap_figures figures_{};
};

}  // namespace heapwright
