// Back of the heap: hands out runs of pages and takes them back. Everything that the heap gets from
// the system or returns to it passes here. One lock guards all of it.
//
//   allocate ── page_memory::take ── free_runs      a free run, resident if one fits
//      │        page_memory::grow ── page_supply    else memory from the system
//      └─────── stay_below_peak, stay_below_limit   purge what the rules forbid
//   release ─── page_memory::insert                 merges the run with free neighbours
//      └─────── purge_early                         purges what the excess rule does not allow
//   tick ────── end_window                          purges what nobody needed for a window of time
//
// page_memory has the mechanism, purge_policy the rules. While a heap is locked in memory
// (page_memory), nothing goes back over time or because of the peak.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heapwright/core/hash.hpp>
#include <heapwright/heap/page_memory.hpp>
#include <heapwright/heap/purge_policy.hpp>
#include <heapwright/heap/retired_spans.hpp>
#include <heapwright/heap/small_random.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class page_heap {
  using classes = class_table<R>;
  using memory = page_memory<R, OS>;
  static constexpr auto relaxed = std::memory_order_relaxed;

 public:
  using lock_type = heap_lock<R, OS>;

  // --- page runs

  /// A run of at least `pages` heap pages for `use` (cut, mixed or large), its start aligned to
  /// `alignment` bytes (a power of two, heap pages and up). Null when the system has no memory.
  /// `zeroed` of the result says whether it reads as zero. The first block begins at one of `lines`
  /// lines of the processor's cache, chosen by the page.
  [[nodiscard, gnu::noinline]] span* allocate(std::size_t pages, std::size_t alignment, span_state use,
                                              std::size_t lines = 1) noexcept {
    holding guard(lock_);
    if (!fits_limit(pages * heap_page)) return nullptr;
    const std::uint64_t decommitted = figures().free_decommitted.get();
    span* s = take(pages, alignment);
    if (s != nullptr) policy_.note_refaulted(decommitted - std::min(decommitted, figures().free_decommitted.get()));
    if (s == nullptr && memory_.grow(pages, alignment)) s = take(pages, alignment);
    if (s == nullptr) {
      show_all();
      if constexpr (R.hardening.guard_large) memory_.free_all_room();
      purge_all();
      if constexpr (R.hardening.separate_classes)
        memory_.unmap_long_runs(SIZE_MAX, R.pages.unmap_from, span_state::free_large);
      if (memory_.grow(pages, alignment)) s = take(pages, alignment);
      if (s == nullptr && alignment <= heap_page && !R.hardening.separate_classes) s = memory_.take_joined(pages);
    }
    return s == nullptr ? nullptr : handed_out(s, use, lines);
  }

  /// A run of about `pages` pages for blocks of class c, maybe with a guard page behind it. Null
  /// when the system has no memory.
  [[nodiscard, gnu::noinline]] span* allocate_cut(unsigned c, std::size_t pages) noexcept {
    if (span* const s = take_retired(c, span_state::cut)) return s;
    const std::size_t lines = classes::lines_of_span(c, pages * heap_page);
    span* s = nullptr;
    if constexpr (R.hardening.random_places) {
      constexpr std::size_t spans_to_a_guard = 4;
      const bool is_guarded = memory::guard_bytes() == heap_page && is_chosen(spans_to_a_guard);
      if (is_guarded) s = allocate(pages + 1, heap_page, span_state::cut, lines);
      if (s != nullptr) {
        holding guard(lock_);
        memory_.add_guard(s);
      }
    }
    if (s == nullptr) s = allocate(pages, heap_page, span_state::cut, lines);
    if (s != nullptr) s->capacity = static_cast<std::uint32_t>(pages * heap_page / classes::of(c).size);
    return s;
  }

  /// A run of pages for a large block, with as many free resident ones behind it, so that it can
  /// grow where it is. Null when there is none.
  [[nodiscard, gnu::noinline, gnu::cold]] span* allocate_with_room(std::size_t pages) noexcept {
    holding guard(lock_);
    if (!fits_limit(pages * heap_page)) return nullptr;
    span* const s = memory_.take_with_room(pages);
    if (s == nullptr) return nullptr;
    policy_.note_free(figures().free_resident);
    return handed_out(s, span_state::large, classes::lines_of_page_run);
  }

  /// A run of pages for one block of page-run class c, allocated by the thread with these owner
  /// bits. Null as above.
  [[nodiscard, gnu::noinline]] span* allocate_page_run(unsigned c, page_tag owner) noexcept {
    span* s = take_retired(c, span_state::large);
    const std::size_t lines = classes::is_page_aligned(c) ? 1 : classes::lines_of_page_run;
    if (s == nullptr) s = allocate(classes::of(c).first_pages, heap_page, span_state::large, lines);
    if (s == nullptr) return nullptr;
    set_class(s, c, owner);
    return s;
  }

  /// A large block for `size` bytes that ends where a guard page begins, as far as its alignment
  /// allows, and pages longer than the heap's; without a guard page where the system refuses one.
  /// A block whose alignment is at most a page has a guard page before it too. One that `grows` has
  /// room for as much again, where there is address space. Null when the system has no memory.
  [[nodiscard, gnu::noinline, gnu::cold]] span* allocate_guarded(std::size_t size, std::size_t alignment,
                                                                 bool grows = false) noexcept {
    const std::size_t page = memory::guard_bytes();
    const std::size_t block_bytes =
        align_up(std::max<std::size_t>(size, 1), std::clamp(alignment, default_alignment, page));
    std::size_t body = align_up(block_bytes, page);
    if (needs_head && body == block_bytes && alignment < heap_page) body += page;
    const std::size_t guards = alignment <= page && !memory_.is_callers() ? 2 : 1;
    const std::size_t pages = (body + guards * page) / heap_page;
    span* s = grows ? allocate_with_room_of_its_own(pages) : nullptr;
    if (s == nullptr) s = take_freed_large(pages, std::max(alignment, page));
    if (s == nullptr) s = allocate(pages, std::max(alignment, page), span_state::large);
    if (s == nullptr) return nullptr;
    holding guard(lock_);
    if (guards == 2) s = behind_guard(s);
    if (s == nullptr) return nullptr;
    memory_.add_guard(s);
    const std::size_t before = (body - block_bytes) % heap_page;  // the tag is at the first page
    const bool lacks_head = needs_head && before == 0 && alignment < heap_page;
    s->offset = static_cast<std::uint16_t>(lacks_head ? heap_page - std::max(alignment, default_alignment) : before);
    return s;
  }

  /// Makes a large block one of page-run class c, or of no class (0).
  void set_class(span* s, unsigned c, page_tag owner) noexcept {
    s->size_class = static_cast<std::uint8_t>(c);
    map().set_tag(s->start, c == 0 ? large_tag : tag_of(owner, c));
  }

  /// Takes back what allocate returned. The caller has cleared the tags of a cut span.
  [[gnu::noinline]] void release(span* s) noexcept {
    holding guard(lock_);
    const bool is_long = s->state == span_state::large && s->bytes() > policy::worth_a_call;
    if (youngest_ != nullptr && (s == youngest_ || (is_long && !keeps_all()))) look_at_youngest(s == youngest_);
    free_room_behind(s);
    if constexpr (R.hardening.separate_classes) {
      if (s->state == span_state::cut || s->size_class != 0) return retire(s);
    }
    if constexpr (hides_large) {
      if (s->state == span_state::large && s->size_class == 0 && hide(s)) return;
    }
    if constexpr (R.hardening.guard_large || R.hardening.random_places) {
      if (!memory_.remove_guard(s)) return;
    }
    free_guard_before(s->start);
    release_held(s);
    if (is_long && youngest_ != nullptr) stay_below_peak_of_growing();
  }

  // --- large blocks

  /// Whether freed large blocks stay for a while where nothing can touch them: some of them,
  /// without memory.
  static constexpr bool hides_large = R.hardening.guard_large && R.hardening.quarantine_bytes != 0;

  /// Makes a large block longer or shorter where it is. False: it is as it was.
  [[nodiscard, gnu::noinline, gnu::cold]] bool try_resize(span* s, std::size_t pages) noexcept {
    holding guard(lock_);
    return pages <= s->pages ? shrink(s, pages) : extend(s, pages);
  }

  /// Makes a large block longer by letting the system move its pages elsewhere. False: it is as it
  /// was.
  [[nodiscard, gnu::noinline, gnu::cold]] bool try_remap(span* s, std::size_t pages) noexcept {
    const std::size_t bytes = page_supply<R, OS>::rounded(pages * heap_page);
    if (!memory_.can_remap(s, bytes)) return false;
    holding guard(lock_);
    const std::size_t more = bytes - s->bytes();
    std::byte* const old_start = s->start;
    if (!fits_limit(more) || !memory_.remap(s, bytes)) return false;
    map().set_tag(old_start, 0);
    set_class(s, 0, 0);
    figures().large.add(more);
    free_guard_before(old_start);
    policy_.note_refaulted(more);
    stay_below_peak();
    stay_below_limit();
    return true;
  }

  /// Makes a large block one of `block_bytes`, where it is or by letting the system move its pages
  /// elsewhere. False: it is as it was; either way it may have lost its guard page, or have got
  /// one.
  [[nodiscard, gnu::noinline, gnu::cold]] bool resize_large(span* s, std::size_t block_bytes) noexcept {
    if constexpr (!R.hardening.guard_large) {
      const std::size_t pages = divide_up(s->offset + block_bytes, heap_page);
      return try_resize(s, pages) || (pages > s->pages && try_remap(s, pages));
    }
    const std::size_t page = memory::guard_bytes();
    const std::size_t pages = (align_up(s->offset + block_bytes, page) + page) / heap_page;
    if (!without_guard(s)) return false;
    bool is_done = pages >= s->pages && try_resize(s, pages);
    if (!is_done) {
      free_room_of(s);
      is_done = try_resize(s, pages) || (pages > s->pages && try_remap(s, pages));
    }
    holding guard(lock_);
    memory_.add_guard(s);
    return is_done;
  }

  /// Makes a large block read as zero by giving its contents back. False: the system refused;
  /// contents are as they were.
  [[nodiscard]] bool clear(span* s) noexcept { return memory_.clear(s); }

  // --- memory to the system

  /// Gives back what was not needed for a whole window of time, if one has passed. Cheap otherwise:
  /// slow steps of malloc and free call it now and then. Never waits for the lock.
  [[gnu::noinline]] void tick() noexcept {
    if constexpr (R.pages.give_back != give_back_policy::over_time) return;
    const std::uint64_t now = OS::milliseconds();
    if (!policy_.is_due(now) || memory_.is_locked()) return;
    if (!lock_.try_acquire()) return;
    if (policy_.is_due(now)) end_window(now);
    lock_.release();
  }

  /// When all threads but one have ended.
  [[gnu::noinline, gnu::cold]] void after_threads() noexcept {
    if (keeps_all()) return;
    holding guard(lock_);
    purge_early(policy_.beyond_need_of_one_thread(levels()));
  }

  /// Gives all free memory back to the system. Returns the bytes given back.
  [[gnu::noinline, gnu::cold]] std::size_t trim() noexcept {
    holding guard(lock_);
    show_all();
    return purge_all();
  }

  void set_window(std::uint64_t ms) noexcept { policy_.set_window(ms); }
  [[nodiscard]] std::uint64_t window_ms() const noexcept { return policy_.window_ms(); }

  /// Bytes that may be resident for blocks, free ones included: memory in use never exceeds it, and
  /// free memory goes back to stay below it. UINT64_MAX: as the recipe says. Takes effect with the
  /// next request.
  void set_limit(std::uint64_t bytes) noexcept { limit_plus_one_.store(bytes + 1, relaxed); }

  [[nodiscard]] std::uint64_t limit() const noexcept {
    const std::uint64_t set = limit_plus_one_.load(relaxed);
    return set == 0 ? R.pages.limit : set - 1;
  }

  // --- all of it

  /// Has blocks from this memory, whole pages of it, and from nowhere else; to be called first. See
  /// page_memory::adopt. False: it has no room for a span of the smallest class, or there is no
  /// memory for records.
  [[nodiscard, gnu::cold]] bool adopt(void* caller_memory, std::size_t bytes) noexcept {
    holding guard(lock_);
    return memory_.adopt(caller_memory, bytes, classes::of(1).first_pages);
  }

  // See page_memory.

  [[nodiscard]] bool is_callers() const noexcept { return memory_.is_callers(); }

  [[nodiscard, gnu::cold]] bool lock_pages() noexcept {
    holding guard(lock_);
    show_all();
    if constexpr (R.hardening.separate_classes) retired_.empty(SIZE_MAX, memory_);
    return memory_.lock_pages();
  }

  [[nodiscard, gnu::cold]] bool unlock_pages() noexcept {
    holding guard(lock_);
    return memory_.unlock_pages();
  }

  /// Zeroed memory for a record of the heap's own, never freed; null when the system has none.
  [[nodiscard]] void* allocate_metadata(std::size_t bytes) noexcept {
    holding guard(lock_);
    return memory_.allocate_metadata(bytes);
  }

  /// Returns everything to the system, blocks in use and records included. Nothing here may be used
  /// afterwards.
  void unmap_all() noexcept { memory_.unmap_all(); }

  /// In the child, whose only thread this is: a lock that another thread held is free.
  [[gnu::cold]] void after_fork_in_child() noexcept {
    lock_.reset_after_fork();
    if constexpr (R.hardening.random_places) random_.restart();
    memory_.after_fork_in_child();
  }

  [[nodiscard]] page_map_of<R, OS>& map() noexcept { return memory_.map(); }
  [[nodiscard]] constexpr const page_map_of<R, OS>& map() const noexcept { return memory_.map(); }
  [[nodiscard]] heap_figures& figures() noexcept { return memory_.figures(); }
  [[nodiscard]] const heap_figures& figures() const noexcept { return memory_.figures(); }
  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

 private:
  using policy = purge_policy<R>;

  /// One in n times.
  [[nodiscard]] bool is_chosen(std::size_t n) noexcept {
    holding guard(lock_);
    return random_.below(n) == 0;
  }

  span* take(std::size_t pages, std::size_t alignment) noexcept {
    run_part part = run_part::first;
    if constexpr (R.hardening.random_places) part = random_.below(2) == 0 ? run_part::first : run_part::last;
    span* const s = memory_.take(pages, alignment, policy::worth_a_call / heap_page, part);
    policy_.note_free(figures().free_resident);
    return s;
  }

  span* handed_out(span* s, span_state use, std::size_t lines) noexcept {
    s->state = use;
    s->size_class = 0;
    s->live = s->carved = 0;
    s->free = nullptr;
    s->offset = first_block_offset(s, lines);
    s->guard_pages = 0;
    count(use).add(s->bytes());
    if (use == span_state::large) {
      map().set_tag(s->start, large_tag);
      if (s->zeroed && s->bytes() > policy::worth_a_call) youngest_ = s;
    }
    stay_below_peak();
    stay_below_limit();
    return s;
  }

  /// One of `lines` cache lines from the start of the run, chosen by a hash of the page. Where
  /// blocks have a seal, not the first one, if there are others: what stands before a block is
  /// looked at.
  static std::uint16_t first_block_offset(const span* s, std::size_t lines) noexcept {
    const std::uint64_t hash = fibonacci_hash(address_of(s->start) >> heap_page_shift) >> 32;
    const std::size_t first = needs_head && lines > 1 ? 1 : 0;
    return static_cast<std::uint16_t>((first + (hash * (lines - first) >> 32)) * cache_line);
  }

  /// Whether what stands before a block of several pages has a mark (sealed_blocks.hpp).
  static constexpr bool needs_head = R.hardening.sealed;

  // --- pages of a class's own

  /// An empty span stays with its class, in memory at first.
  void retire(span* s) noexcept {
    if (s->state == span_state::large) map().set_tag(s->start, 0);
    count(s->state).subtract(s->bytes());
    retired_.put(s, memory_);
    if (!keeps_all()) purge_early(policy_.beyond_need(levels()));
  }

  /// A span that class c had before, as long as it was; null: there is none.
  [[nodiscard]] span* take_retired([[maybe_unused]] unsigned c, [[maybe_unused]] span_state use) noexcept {
    if constexpr (R.hardening.separate_classes) {
      holding guard(lock_);
      span* const s = retired_.next(c);
      if (s == nullptr || !fits_limit(s->bytes())) return nullptr;
      const bool was_resident = retired_.take(c, memory_);
      policy_.note_free(figures().free_resident);
      if (!was_resident) policy_.note_refaulted(s->bytes());
      memory_.bring_in(s);
      const std::uint16_t offset = s->offset;
      const std::uint8_t guard_pages = s->guard_pages;
      handed_out(s, use, 1);
      s->offset = offset;
      s->guard_pages = guard_pages;
      return s;
    }
    return nullptr;
  }

  /// Pages that blocks without a class had before; null: there are none.
  [[nodiscard]] span* take_freed_large([[maybe_unused]] std::size_t pages,
                                       [[maybe_unused]] std::size_t alignment) noexcept {
    if constexpr (R.hardening.separate_classes) {
      holding guard(lock_);
      if (!fits_limit(pages * heap_page)) return nullptr;
      span* const s = memory_.take_for_large(pages, alignment);
      return s == nullptr ? nullptr : handed_out(s, span_state::large, 1);
    }
    return nullptr;
  }

  /// A run of pages for a large block that grows, with as many behind it. Null when the system has
  /// no such memory.
  [[nodiscard]] span* allocate_with_room_of_its_own(std::size_t pages) noexcept {
    holding guard(lock_);
    if (!fits_limit(pages * heap_page)) return nullptr;
    span* s = memory_.take_with_room_of_its_own(pages, pages);
    if (s == nullptr && memory_.grow(2 * pages, memory::guard_bytes()))
      s = memory_.take_with_room_of_its_own(pages, pages);
    return s == nullptr ? nullptr : handed_out(s, span_state::large, 1);
  }

  /// A large block is free or does not grow.
  void free_room_behind([[maybe_unused]] const span* s) noexcept {
    if constexpr (R.hardening.guard_large) {
      if (s->state == span_state::large && s->size_class == 0) memory_.free_room_behind(s);
    }
  }

  void free_room_of(const span* s) noexcept {
    holding guard(lock_);
    free_room_behind(s);
  }

  /// A large block without its first page, which is a guard now. Null: there is no memory for a
  /// record; the block is free.
  [[nodiscard]] span* behind_guard(span* s) noexcept {
    span* const rest = memory_.cut_guard(s);
    if (rest == nullptr) return release_held(s), nullptr;
    map().set_tag(s->start, 0);
    map().set_tag(rest->start, large_tag);
    if (s == youngest_) youngest_ = rest;
    return rest;
  }

  /// A large block that began at p is no longer there.
  void free_guard_before([[maybe_unused]] const std::byte* p) noexcept {
    if constexpr (R.hardening.guard_large) figures().large.subtract(memory_.free_guard_before(p));
  }

  bool without_guard(span* s) noexcept {
    holding guard(lock_);
    return memory_.remove_guard(s);
  }

  /// A freed large block stays where nothing can touch it; another that was there is free. False:
  /// the system refused.
  bool hide(span* s) noexcept {
    if (!memory_.hide(s)) return false;
    map().set_tag(s->start, 0);
    figures().large.subtract(s->bytes());
    figures().free_decommitted.add(s->bytes());
    figures().decommitted_total.add(s->bytes());
    show(std::exchange(place_to_hide(s), s));
    return true;
  }

  /// A free one; where all are taken, one at random.
  [[nodiscard]] span*& place_to_hide(const span* s) noexcept {
    for (span*& place : hidden_) {
      if (place == nullptr) return place;
    }
    return hidden_[fibonacci_hash(address_of(s->start)) >> 60];
  }

  /// Where the system refuses, the run is lost.
  void show(span* s) noexcept {
    if (s == nullptr || !memory_.show(s)) return;
    figures().free_decommitted.subtract(s->bytes());  // as a free run it counts again
    free_guard_before(s->start);
    memory_.insert_shown(s);
  }

  void show_all() noexcept {
    if constexpr (hides_large) {
      for (span*& place : hidden_) show(std::exchange(place, nullptr));
    }
  }

  void release_held(span* s) noexcept {
    if (s->state == span_state::large) map().set_tag(s->start, 0);
    count(s->state).subtract(s->bytes());
    if constexpr (R.hardening.separate_classes) {
      if (s->state == span_state::large) return memory_.insert_large(s);
    }
    memory_.insert(s);
    if (!keeps_all()) purge_early(policy_.beyond_need(levels()));
  }

  bool shrink(span* s, std::size_t pages) noexcept {
    if (pages == s->pages) return true;
    span* const rest = memory_.cut(s, pages);
    if (rest == nullptr) return false;
    release_held(rest);
    return true;
  }

  bool extend(span* s, std::size_t pages) noexcept {
    const std::size_t more = pages - s->pages;
    if (!fits_limit(more * heap_page) || !memory_.extend(s, more)) return false;
    figures().large.add(more * heap_page);
    policy_.note_free(figures().free_resident);
    stay_below_peak();
    stay_below_limit();
    return true;
  }

  // --- purging

  [[nodiscard]] std::uint64_t in_use() const noexcept { return figures().spans.get() + figures().large.get(); }

  [[nodiscard]] typename policy::levels levels() const noexcept {
    return {.in_use = in_use(), .free_resident = figures().free_resident};
  }

  /// True when free memory goes back only on trim, or for a limit.
  [[nodiscard]] bool keeps_all() const noexcept {
    if constexpr (R.pages.give_back == give_back_policy::over_time) return memory_.is_locked();
    return R.pages.give_back == give_back_policy::when_asked;
  }

  /// About so many bytes of free resident memory. Returns the bytes.
  std::size_t give_back(std::uint64_t bytes) noexcept {
    std::size_t done = 0;
    if constexpr (R.hardening.separate_classes) done = retired_.empty(bytes, memory_);
    return done + (bytes > done ? memory_.purge(bytes - done) : 0);
  }

  void end_window(std::uint64_t now) noexcept {
    youngest_ = nullptr;
    policy_.note_in_use(in_use());
    memory_.unmap_long_runs(give_back(policy_.unused_in_window()), R.pages.unmap_from);
    policy_.begin_window(now, figures().free_resident);
  }

  void purge_early(std::uint64_t bytes) noexcept {
    if (bytes == 0) return;
    policy_.note_purged_early(give_back(bytes));
    memory_.unmap_long_runs(bytes, R.pages.max_free_resident);
  }

  /// After memory has come into use.
  void stay_below_peak() noexcept {
    policy_.note_in_use(in_use() - (youngest_ == nullptr ? 0 : youngest_->bytes()));
    if (keeps_all()) return;
    if (const std::uint64_t bytes = policy_.beyond_peak(levels()); bytes > 0)
      policy_.note_purged_early(give_back(bytes));
  }

  /// Before a large block is freed. The youngest one counts, with all that is in use, if the
  /// program has touched it up to its end.
  [[gnu::noinline, gnu::cold]] void look_at_youngest(bool is_freed) noexcept {
    const bool is_touched = memory_.is_end_resident(*youngest_);
    if (is_touched) policy_.note_in_use(in_use());
    if (is_touched || is_freed) youngest_ = nullptr;
  }

  /// After another large block was freed. An array that grows gets a block twice as long, and frees
  /// the old one when half of the new one is touched. The program never had both, so the old one
  /// must not stay.
  [[gnu::noinline, gnu::cold]] void stay_below_peak_of_growing() noexcept {
    if (keeps_all()) return;
    if (const std::uint64_t bytes = policy_.beyond_peak(levels()); bytes > 0)
      policy_.note_purged_early(give_back(bytes));
  }

  [[nodiscard]] bool fits_limit(std::uint64_t more) const noexcept { return in_use() + more <= limit(); }

  void stay_below_limit() noexcept {
    const std::uint64_t resident = in_use() + figures().free_resident.get();
    if (resident > limit()) [[unlikely]]
      give_back(resident - limit());
  }

  std::size_t purge_all() noexcept {
    const std::size_t done = give_back(SIZE_MAX / 2);
    policy_.note_purged_all();
    memory_.unmap_long_runs(SIZE_MAX, R.pages.unmap_from);
    return done;
  }

  figure& count(span_state state) noexcept { return state == span_state::large ? figures().large : figures().spans; }

  lock_type lock_;
  policy policy_;
  /// The large block that was last made of memory that was not resident: it may not be touched yet,
  /// and does not count for the peak until then, or until the window ends. Null: there is none.
  span* youngest_ = nullptr;
  struct none {};
  [[no_unique_address]] std::conditional_t<hides_large, std::array<span*, 16>, none> hidden_{};
  [[no_unique_address]] std::conditional_t<R.hardening.random_places, small_random<OS>, none> random_{};
  [[no_unique_address]] std::conditional_t<R.hardening.separate_classes, retired_spans<R, OS>, none> retired_{};
  std::atomic<std::uint64_t> limit_plus_one_{0};  ///< 0: the recipe's, so that a heap is all zero at first
  memory memory_;
};

}  // namespace heapwright
