// The pages of a heap: which are free, and whether they are in memory. Maps pages from the system,
// gives them back, and locks them. Mechanism only: page_heap decides how much is given back, and
// its lock guards all of this.
//
// Free runs (free_runs.hpp) are resident, which makes them cheap to use again, or decommitted, so
// that the next touch is a page fault. A request takes a resident run if one fits.
//
// Words     purge     give the longest resident runs back to the system
//           decommit  give the pages of one run back; its address space stays
//           unmap     give address space back
//
// Locked. A heap can be locked in memory and unlocked at run time. While it is locked:
//   each span and each resident run is locked, except what the system has refused to lock. Where
//   the system's pages are longer than the heap's, a resident run may lack a page that it shared
//   with a decommitted run, until it is taken; what goes back is unlocked first.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/heap/free_runs.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class page_memory {
  using supply = page_supply<R, OS>;
  static constexpr auto relaxed = std::memory_order_relaxed;

  /// Of free pages that large blocks had, without their contents.
  static constexpr span_state free_after_large =
      R.hardening.separate_classes ? span_state::free_large : span_state::free_decommitted;

 public:
  // --- taking

  /// A free run of `pages` pages, aligned, resident where one fits; null when there is none. Runs
  /// from `join_from` pages on may be joined from neighbours that are each too short.
  [[nodiscard]] span* take(std::size_t pages, std::size_t alignment, std::size_t join_from, run_part part) noexcept {
    if constexpr (R.hardening.separate_classes) join_from = SIZE_MAX;
    return brought_in([&] {
      span* found = free_.take(span_state::free_resident, pages, alignment, 0, part);
      if (found == nullptr && pages >= join_from && alignment <= heap_page) found = free_.take_adjacent(pages);
      return found != nullptr ? found : free_.take(span_state::free_decommitted, pages, alignment, 0, part);
    });
  }

  /// As take, of what was a block without a class before.
  [[nodiscard]] span* take_for_large(std::size_t pages, std::size_t alignment) noexcept {
    return brought_in([&] { return free_.take(span_state::free_large, pages, alignment); });
  }

  /// As take, joined from neighbours only.
  [[nodiscard]] span* take_joined(std::size_t pages) noexcept {
    return brought_in([&] { return free_.take_adjacent(pages); });
  }

  /// A resident run of `pages` pages that has as many free resident pages behind it; null when
  /// there is none.
  [[nodiscard]] span* take_with_room(std::size_t pages) noexcept {
    return free_.take(span_state::free_resident, pages, heap_page, pages);
  }

  /// Makes a span in use longer by `more` pages of its room, or free pages behind it. False: they
  /// are not free; it is as it was.
  [[nodiscard]] bool extend(span* s, std::size_t more) noexcept {
    const std::uint64_t decommitted = figures().free_decommitted.get();
    if (!free_.extend(s, more)) return false;
    if (wants_resident() && may_be_absent(decommitted)) make_resident(s->end() - more * heap_page, more * heap_page);
    return true;
  }

  /// Cuts a span in use after `pages` pages; returns the rest. Null: no memory for a record; it is
  /// as it was.
  [[nodiscard]] span* cut(span* s, std::size_t pages) noexcept {
    if (!free_.reserve(1)) return nullptr;
    span* const rest = free_.split(s, pages);
    map().set_ends(s);
    return rest;
  }

  /// Pages with as many behind them as `more` says, which are their room: no other block gets them
  /// until free_room. Null: there are none, or no memory for records.
  [[nodiscard]] span* take_with_room_of_its_own(std::size_t pages, std::size_t more) noexcept {
    // A record for the cut, beside those that taking needs.
    if (is_callers_ || !free_.reserve(3)) return nullptr;
    span* s = free_.take(free_after_large, pages + more, guard_bytes());
    if (s == nullptr && free_after_large != span_state::free_decommitted)
      s = free_.take(span_state::free_decommitted, pages + more, guard_bytes());
    if (s == nullptr) return nullptr;
    free_.cut_room(s, pages);
    if (wants_resident()) make_resident(s->start, s->bytes());
    return s;
  }

  /// The room of a large block, if it has one, is free.
  void free_room_behind(const span* s) noexcept {
    if (span* const room = free_.room_behind(s)) insert_room(room);
  }

  /// Of all blocks.
  void free_all_room() noexcept {
    while (span* const room = free_.any_room()) insert_room(room);
  }

  /// A span that is free now, with its contents in memory.
  void insert(span* s) noexcept {
    s->state = span_state::free_resident;
    s->zeroed = false;
    free_.insert(s);
  }

  // --- from the system

  /// Maps memory for a run of `pages` pages, and some more for the next ones. False: the system has
  /// none.
  [[nodiscard, gnu::noinline, gnu::cold]] bool grow(std::size_t pages, std::size_t alignment) noexcept {
    const std::size_t need = supply::mapped_for(pages * heap_page + alignment - heap_page);
    const std::size_t share =
        std::clamp(figures().mapped.get() / 8, std::uint64_t{R.pages.growth}, std::uint64_t{R.pages.max_growth});
    const std::size_t comfortable = need < R.pages.growth ? supply::mapped_for(share) : need;
    // What only the alignment needs, which can be gigabytes, is not worth the memory.
    const bool is_resident = wants_resident() && alignment <= heap_page;
    return map_more(comfortable, is_resident) || (comfortable > need && map_more(need, is_resident));
  }

  /// Takes this memory, whole pages of it, and none from the system; to be called first. The memory
  /// stays the caller's: none of it goes back. False: it has no room for `least` pages, or there is
  /// no memory for records.
  [[nodiscard, gnu::cold]] bool adopt(void* memory, std::size_t bytes, std::size_t least) noexcept {
    const std::uintptr_t first = align_up(address_of(memory), heap_page);
    const std::uintptr_t last = align_down(address_of(memory) + bytes, heap_page);
    is_callers_ = true;
    if (last < first || last - first < least * heap_page || !free_.reserve(1)) return false;
    auto* const start = reinterpret_cast<std::byte*>(first);
    if (!free_.reserve_map(start, last - first)) return false;
    add_run(start, last - first, span_state::free_resident, false);
    return true;
  }

  /// Makes a span in use `bytes` long by letting the system move its pages elsewhere. False: it is
  /// as it was.
  [[nodiscard, gnu::cold]] bool remap(span* s, std::size_t bytes) noexcept {
    // The page map must not run out of memory after the move.
    if (!free_.reserve_map(nullptr, bytes)) return false;
    void* const moved = OS::remap(s->start, s->bytes(), bytes);
    if (moved == nullptr) return false;
    const std::size_t old_bytes = s->bytes();
    map().clear_ends(s);
    count_mapped(bytes - old_bytes);
    s->start = static_cast<std::byte*>(moved);
    s->pages = bytes / heap_page;
    s->zeroed = false;
    free_.cover(moved, bytes);
    map().set_ends(s);
    if (wants_resident()) make_resident(s->start + old_bytes, bytes - old_bytes);
    return true;
  }

  /// Whether remap can move this span to a length of `bytes`.
  [[nodiscard]] bool can_remap(const span* s, std::size_t bytes) const noexcept {
    constexpr std::size_t longest = 64 * GiB;  // bounds what is set aside for the page map
    // The system would give the old address space to others.
    if constexpr (R.hardening.separate_classes) return false;
    return !is_callers_ && is_aligned(s->start, supply::grain()) && s->bytes() % supply::grain() == 0 &&
           bytes > s->bytes() && bytes <= longest;
  }

  // --- to the system

  /// Decommits the longest resident runs, about `bytes` of them. Returns the bytes.
  [[gnu::noinline, gnu::cold]] std::size_t purge(std::size_t bytes) noexcept {
    std::size_t done = 0;
    while (done < bytes && !is_callers_) {
      span* s = free_.longest(span_state::free_resident);
      if (s == nullptr) break;
      free_.remove(s);
      // Of a run much longer than what is to go, the front stays: the next requests are cut from
      // it.
      const std::size_t pages = align_up(bytes - done, std::max(supply::grain(), 16 * heap_page)) / heap_page;
      if (s->pages > pages && free_.reserve(1)) {
        span* const tail = free_.split(s, s->pages - pages);
        free_.put(s);
        s = tail;
      }
      const std::size_t gone = decommit(s);
      if (gone == 0) break;
      done += gone;
    }
    return done;
  }

  /// Unmaps decommitted runs of `shortest` bytes and more, up to about `bytes` of them. Shorter
  /// runs keep their address space: each hole costs the system a mapping.
  [[gnu::noinline, gnu::cold]] void unmap_long_runs(std::size_t bytes, std::size_t shortest,
                                                    span_state kind = span_state::free_decommitted) noexcept {
    for (std::size_t done = 0; done < bytes;) {
      span* const s = free_.longest(kind);
      if (s == nullptr || s->bytes() < shortest) break;
      const std::size_t length = s->bytes();
      free_.remove(s);
      if (!unmap(s)) break;
      done += length;
    }
  }

  /// Makes a span in use read as zero by decommitting its contents. False: the system refused;
  /// contents are as they were.
  [[nodiscard]] bool clear(span* s) noexcept {
    if (is_callers_) return false;
    const std::uintptr_t first = align_up(address_of(s->start), supply::grain());
    const std::uintptr_t last = align_down(address_of(s->end()), supply::grain());
    if (first >= last || !OS::discard(reinterpret_cast<void*>(first), last - first)) return false;
    std::memset(s->start, 0, first - address_of(s->start));
    std::memset(reinterpret_cast<void*>(last), 0, address_of(s->end()) - last);
    s->zeroed = true;
    return true;
  }

  /// Gives the contents of a span back that is in use no more. False: the system refused, or the
  /// span has no whole page of the system; contents are as they were.
  [[nodiscard]] bool empty(span* s) noexcept {
    const std::uintptr_t first = align_up(address_of(s->start), supply::grain());
    const std::uintptr_t last = align_down(address_of(s->usable_end()), supply::grain());
    if (is_callers_ || first >= last || !discard(reinterpret_cast<void*>(first), last - first)) return false;
    figures().decommitted_total.add(s->bytes());
    s->zeroed = first == address_of(s->start) && last == address_of(s->usable_end());
    return true;
  }

  /// The opposite, where pages are to be in memory before the program touches them.
  void bring_in(const span* s) noexcept {
    if (wants_resident()) make_resident(s->start, static_cast<std::size_t>(s->usable_end() - s->start));
  }

  /// Returns everything to the system, spans in use and records included. Nothing here may be used
  /// afterwards.
  void unmap_all() noexcept {
    if (!is_callers_) {
      free_.unmap_runs();
    } else if (is_locked()) {
      (void)unlock_spans();
    }
    free_.unmap_records();
  }

  /// Whether the last page of a span in use is in memory.
  [[nodiscard, gnu::cold]] static bool is_end_resident(const span& s) noexcept {
    const std::size_t page = supply::grain();
    return OS::resident(reinterpret_cast<void*>(align_down(address_of(s.usable_end()) - 1, page)), page) != 0;
  }

  // --- guard pages

  /// Whether all memory is the caller's: there are no guards.
  [[nodiscard]] bool is_callers() const noexcept { return is_callers_; }

  /// A page of the system: the shortest guard.
  [[nodiscard]] static std::size_t guard_bytes() noexcept { return supply::grain(); }

  /// Makes the last page of a span one that cannot be touched, where the system allows it.
  void add_guard(span* s) noexcept {
    const std::size_t page = guard_bytes();
    if (is_callers_ || guards_ >= OS::most_protected() || !OS::protect(s->end() - page, page)) return;
    ++guards_;
    s->guard_pages = static_cast<std::uint8_t>(page / heap_page);
  }

  /// False: the guard page stays. The run is leaked then: handing it out would crash the program.
  [[nodiscard, gnu::cold]] bool remove_guard(span* s) noexcept {
    const std::size_t bytes = s->guard_pages * heap_page;
    if (bytes == 0) return true;
    if (!OS::unprotect(s->end() - bytes, bytes)) return false;
    --guards_;
    s->guard_pages = 0;  // lock_pages would pass over the end of the run, which is memory again
    if (wants_resident()) make_resident(s->end() - bytes, bytes);  // it may be older than the lock
    return true;
  }

  /// Makes the first page of a span in use a guard of its own; returns the rest. Null: no memory
  /// for a record; it is as it was.
  [[nodiscard]] span* cut_guard(span* s) noexcept {
    span* const rest = cut(s, guard_bytes() / heap_page);
    if (rest == nullptr) return nullptr;
    map().set_ends(rest);
    s->state = span_state::guard;
    add_guard(s);
    return rest;
  }

  /// The guard that ends at p, where a large block began that is free or was moved, is free too.
  /// Returns its bytes; 0: there is none, or it stays.
  std::size_t free_guard_before(const std::byte* p) noexcept {
    span* const s = map().span_at(p - heap_page);
    if (s == nullptr || s->state != span_state::guard || s->end() != p) return 0;
    const std::size_t bytes = s->bytes();
    if (!remove_guard(s)) return 0;
    if constexpr (R.hardening.separate_classes) {
      figures().decommitted_total.add(bytes);
      insert_shown(s);
    } else {
      insert(s);
    }
    return bytes;
  }

  /// Gives the contents of a large block back, and makes it one that cannot be touched. False:
  /// nothing changed, but for the contents.
  [[nodiscard]] bool hide(span* s) noexcept {
    if (is_callers_ || !OS::protect(s->start, s->bytes())) return false;
    guards_ += s->guard_pages == 0 ? 1 : 0;
    return true;
  }

  /// False: it stays so, and is lost.
  [[nodiscard]] bool show(span* s) noexcept {
    s->guard_pages = 0;
    if (!OS::unprotect(s->start, s->bytes())) return false;
    --guards_;
    return true;
  }

  /// A span that is free now, and was hidden until now.
  void insert_shown(span* s) noexcept {
    s->state = free_after_large;
    s->zeroed = true;
    free_.insert(s);
  }

  /// What a block without a class had. Its contents are gone, as far as the system has allowed
  /// that.
  void insert_large(span* s) noexcept {
    s->zeroed = false;
    (void)empty(s);
    s->state = span_state::free_large;
    free_.insert(s);
  }

  // --- locked in memory

  /// Locks what is in memory, and from then on what comes into use. False: the system refused a
  /// part now. Memory that was not locked before is not locked then, in no part; memory that was
  /// locked stays so.
  [[nodiscard, gnu::cold]] bool lock_pages() noexcept {
    std::size_t bytes = 0;
    bool is_done = true;
    // A page that cannot be touched cannot be brought into memory.
    const auto in_memory = [](const span& s) {
      const bool is_absent = s.state == span_state::free_decommitted || s.state == span_state::free_large ||
                             s.state == span_state::retired || s.state == span_state::room;
      return is_absent ? 0 : s.bytes() - s.guard_pages * heap_page;
    };
    free_.for_each_range(in_memory, [&](std::byte* p, std::size_t n) {
      is_done = is_done && os_pages<OS>::lock(p, n);
      bytes += n;
    });
    if (is_locked()) return is_done;
    if (!is_done) return unlock_spans(), false;
    figures().locked_total.add(bytes);
    set_locked(true);
    return true;
  }

  /// Undoes lock_pages, and what the recipe says. False: the system refused a part; the pages count
  /// as locked.
  [[nodiscard, gnu::cold]] bool unlock_pages() noexcept {
    if (!unlock_spans()) return false;
    set_locked(false);
    return true;
  }

  [[nodiscard]] bool is_locked() const noexcept { return R.pages.locked != is_not_as_recipe_.load(relaxed); }

  /// In the child of a fork no page is locked.
  void after_fork_in_child() noexcept { is_not_as_recipe_.store(false, relaxed); }

  // --- records

  [[nodiscard]] void* allocate_metadata(std::size_t bytes) noexcept { return free_.allocate_metadata(bytes); }
  [[nodiscard]] page_map_of<R, OS>& map() noexcept { return free_.map(); }
  [[nodiscard]] constexpr const page_map_of<R, OS>& map() const noexcept { return free_.map(); }
  [[nodiscard]] heap_figures& figures() noexcept { return free_.figures(); }
  [[nodiscard]] const heap_figures& figures() const noexcept { return free_.figures(); }

 private:
  void insert_room(span* room) noexcept {
    free_.free_room(room);
    room->state = free_after_large;
    free_.insert(room);
  }

  /// The span that `taken()` takes, in memory if the heap wants that.
  template <class F>
  span* brought_in(F taken) noexcept {
    const std::uint64_t decommitted = figures().free_decommitted.get();
    span* const s = taken();
    if (wants_resident() && s != nullptr && may_be_absent(decommitted)) make_resident(s->start, s->bytes());
    return s;
  }

  /// True when what was taken since free_decommitted had this value may not be in memory: a part of
  /// it was decommitted. Or, where the system's pages are longer than the heap's, it shared one
  /// with a run that was decommitted.
  [[nodiscard]] bool may_be_absent(std::uint64_t decommitted) const noexcept {
    return figures().free_decommitted.get() != decommitted || (is_locked() && supply::grain() > heap_page);
  }

  /// True when pages are to be in memory before the program touches them.
  [[nodiscard]] bool wants_resident() const noexcept { return R.pages.prefault || is_locked(); }

  void make_resident(std::byte* p, std::size_t bytes) noexcept {
    supply::make_resident(p, bytes, is_locked(), figures());
  }

  [[gnu::noinline, gnu::cold]] bool map_more(std::size_t bytes, bool is_resident) noexcept {
    if (is_callers_ || !free_.reserve(1)) return false;
    void* const fresh = supply::map(bytes, figures());
    if (fresh == nullptr) return false;
    if (!free_.reserve_map(fresh, bytes)) {
      OS::unmap(fresh, bytes);
      return false;
    }
    if (is_resident) make_resident(static_cast<std::byte*>(fresh), bytes);
    const auto state = is_resident ? span_state::free_resident : span_state::free_decommitted;
    add_run(static_cast<std::byte*>(fresh), bytes, state, true);
    figures().mappings.add(1);
    return true;
  }

  /// New memory. The record and the room in the page map are reserved.
  void add_run(std::byte* start, std::size_t bytes, span_state state, bool zeroed) noexcept {
    free_.cover(start, bytes);
    span* const s = free_.new_record();
    s->start = start;
    s->pages = bytes / heap_page;
    s->state = state;
    s->zeroed = zeroed;
    count_mapped(bytes);
    free_.insert(s);
  }

  void count_mapped(std::size_t bytes) noexcept {
    const std::uint64_t mapped = figures().mapped.add(bytes);
    if (mapped > figures().mapped_peak.get()) figures().mapped_peak.set(mapped);
  }

  /// Decommits a resident run that is in no bin; the bytes. 0: the system refused, or the run has
  /// no whole page of the system; it is resident and in its bin again then.
  std::size_t decommit(span* s) noexcept {
    const std::size_t bytes = s->bytes();
    const auto [first, last] = free_.system_pages(s);
    if (first >= last || !discard(reinterpret_cast<void*>(first), last - first)) {
      free_.put(s);
      return 0;
    }
    figures().decommitted_total.add(bytes);
    s->state = span_state::free_decommitted;
    s->zeroed = first <= address_of(s->start) && last >= address_of(s->end());
    free_.insert(s);
    return bytes;
  }

  bool discard(void* p, std::size_t bytes) noexcept {
    if (is_locked() && !os_pages<OS>::unlock(p, bytes)) return false;
    return OS::discard(p, bytes);
  }

  /// Unmaps the whole grains of a decommitted run that is in no bin. What is left at its ends is in
  /// its bin again. False: there is no whole grain, the system refused, or there is no memory for
  /// records; all of the run is in its bin again.
  bool unmap(span* s) noexcept {
    const std::uintptr_t first = align_up(address_of(s->start), supply::grain());
    const std::uintptr_t last = align_down(address_of(s->end()), supply::grain());
    const unsigned left = (first > address_of(s->start) ? 1 : 0) + (last < address_of(s->end()) ? 1 : 0);
    if (first >= last || !free_.reserve(left) || !OS::unmap(reinterpret_cast<void*>(first), last - first)) {
      free_.put(s);
      return false;
    }
    if (last < address_of(s->end())) free_.put(free_.split(s, (last - address_of(s->start)) / heap_page));
    if (first > address_of(s->start)) {
      span* const unmapped = free_.split(s, (first - address_of(s->start)) / heap_page);
      free_.put(s);
      s = unmapped;
    }
    figures().mapped.subtract(last - first);
    map().clear_ends(s);
    free_.recycle(s);
    return true;
  }

  void set_locked(bool locked) noexcept { is_not_as_recipe_.store(R.pages.locked != locked, relaxed); }

  /// All of them, locked or not. False: the system refused a part.
  bool unlock_spans() noexcept {
    bool is_done = true;
    free_.for_each_range([](const span& s) { return s.bytes(); },
                         [&](std::byte* p, std::size_t bytes) { is_done = os_pages<OS>::unlock(p, bytes) && is_done; });
    return is_done;
  }

  std::size_t guards_ = 0;                     ///< ranges that cannot be touched
  bool is_callers_ = false;                    ///< all memory is the caller's
  std::atomic<bool> is_not_as_recipe_{false};  ///< locked, where the recipe does not say so; or not, where it does
  free_runs<R, OS> free_;
};

}  // namespace heapwright
