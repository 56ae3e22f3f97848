// The page heap hands out runs of pages and takes them back; everything that the heap gets from the system or returns to
// it passes here. One lock guards all of it.
//
// Free runs (free_runs.hpp) are resident, which makes them cheap to use again, or returned, so that the next touch costs a page
// fault. A request takes a resident run if one fits, so that memory in use does not grow while there is some to spare.
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
// program whose blocks do not fit the gaps is not made to fault for ever; the first by no more than 3/4 of that most.
//
// Locked. A heap can be locked in memory and unlocked at run time. While it is locked:
//   every span and every resident run is locked, except what the system has refused to lock. Where its pages are longer than
//   ours, a resident run may lack one that it shared with a run that went back, until it is taken;
//   nothing goes back over time or because of the peak; what goes back otherwise is unlocked first.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/hash.hpp>
#include <heapwright/heap/free_runs.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class page_heap {
  using supply = page_supply<R, OS>;
  static constexpr auto relaxed = std::memory_order_relaxed;

 public:
  using lock_type = heap_lock<R, OS>;

  /// A run of at least `pages` heap pages for `use` (cut or large), its start aligned to `alignment` bytes (a power of two,
  /// heap pages and up). Null when the system has no memory. `zeroed` of the result says whether it reads as zero. The first block
  /// begins at one of `lines` lines of the processor's cache, chosen by the page.
  [[nodiscard, gnu::noinline]] span* allocate(std::size_t pages, std::size_t alignment, span_state use,
                                              std::size_t lines = 1) noexcept {
    holding guard(lock_);
    if (!fits_limit(pages * heap_page)) return nullptr;
    const std::uint64_t returned = figures().free_returned.get();
    span* s = take(pages, alignment);
    if (s != nullptr) note_missed(returned - std::min(returned, figures().free_returned.get()));
    if (s == nullptr && grow(pages, alignment)) s = take(pages, alignment);
    if (s == nullptr) {
      give_back_everything();
      if (grow(pages, alignment)) s = take(pages, alignment);
      if (s == nullptr && alignment <= heap_page) s = brought_in([&] { return free_.take_adjacent(pages); });
    }
    return s == nullptr ? nullptr : handed_out(s, use, lines);
  }

  /// A run of pages for a large block, with as many free ones in memory behind it, so that it can grow where it is. Null when there is none.
  [[nodiscard, gnu::noinline, gnu::cold]] span* allocate_with_room(std::size_t pages) noexcept {
    holding guard(lock_);
    if (!fits_limit(pages * heap_page)) return nullptr;
    span* const s = free_.take(span_state::free_resident, pages, heap_page, pages);
    if (s == nullptr) return nullptr;
    note_low_water();
    return handed_out(s, span_state::large, class_table<R>::lines_of_whole);
  }

  /// A run of pages for one block of whole class c, drawn by the thread with these owner bits; null as above.
  [[nodiscard, gnu::noinline]] span* allocate_whole(unsigned c, page_tag owner) noexcept {
    const std::size_t lines = class_table<R>::is_page_aligned(c) ? 1 : class_table<R>::lines_of_whole;
    span* const s = allocate(class_table<R>::of(c).first_pages, heap_page, span_state::large, lines);
    if (s == nullptr) return nullptr;
    set_whole(s, c, owner);
    return s;
  }

  /// A large block for `size` bytes that ends where a page begins that cannot be touched, as far as its alignment allows, and pages longer than ours;
  /// where the system refuses that, without. Null as above.
  [[nodiscard, gnu::noinline, gnu::cold]] span* allocate_guarded(std::size_t size, std::size_t alignment) noexcept {
    const std::size_t page = supply::grain();
    const std::size_t block_bytes =
        align_up(std::max<std::size_t>(size, 1), std::clamp(alignment, default_alignment, page));
    const std::size_t body = align_up(block_bytes, page);
    span* const s = allocate((body + page) / heap_page, std::max(alignment, page), span_state::large);
    if (s == nullptr) return nullptr;
    holding guard(lock_);
    const bool is_guarded = !is_callers_ && OS::protect(s->end() - page, page);
    s->offset = static_cast<std::uint16_t>((body - block_bytes) % heap_page);  // the tag is at the first page
    if (is_guarded) s->guard_pages = static_cast<std::uint8_t>(page / heap_page);
    return s;
  }

  /// Makes a large block one of a whole class, or of none (0).
  void set_whole(span* s, unsigned c, page_tag owner) noexcept {
    s->size_class = static_cast<std::uint8_t>(c);
    map().set_tag(s->start, c == 0 ? large_tag : tag_of(owner, c));
  }

  /// Takes back what allocate returned. The tags of a cut span have been cleared by the caller.
  [[gnu::noinline]] void release(span* s) noexcept {
    holding guard(lock_);
    if constexpr (R.hardening.guard_large) {
      if (!remove_guard(s)) return;
    }
    release_held(s);
  }

  /// Makes a large block longer or shorter where it is. False: it stays as it was.
  [[nodiscard, gnu::noinline, gnu::cold]] bool try_resize(span* s, std::size_t pages) noexcept {
    holding guard(lock_);
    return pages <= s->pages ? shrink(s, pages) : extend(s, pages);
  }

  /// Makes a large block longer by letting the system move its pages elsewhere. False: it stays as it was.
  [[nodiscard, gnu::noinline, gnu::cold]] bool try_remap(span* s, std::size_t pages) noexcept {
    const std::size_t bytes = supply::rounded(pages * heap_page);
    if (is_callers_ || !is_aligned(s->start, supply::grain()) || s->bytes() % supply::grain() != 0) return false;
    if (bytes <= s->bytes() || bytes > largest_move) return false;
    holding guard(lock_);
    if (!fits_limit(bytes - s->bytes())) return false;
    // The page map must not run out of memory after the move.
    if (!free_.reserve_map(nullptr, bytes)) return false;
    void* const moved = OS::remap(s->start, s->bytes(), bytes);
    if (moved == nullptr) return false;
    map().set_tag(s->start, 0);
    map().clear_ends(s);
    const std::size_t old_bytes = s->bytes();
    count_mapped(bytes - old_bytes);
    figures().large.add(bytes - old_bytes);
    note_missed(bytes - old_bytes);
    s->start = static_cast<std::byte*>(moved);
    s->pages = bytes / heap_page;
    s->zeroed = false;
    s->size_class = 0;
    free_.cover(moved, bytes);
    map().set_ends(s);
    map().set_tag(s->start, large_tag);
    if (wants_resident()) make_resident(s->start + old_bytes, bytes - old_bytes);
    stay_below_peak();
    stay_below_limit();
    return true;
  }

  /// Makes a large block read as zero by giving its contents back. False: the system refused; contents are as they were.
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

  /// Gives back what was not needed for a whole window of time, if one has passed. Cheap otherwise; called now and then from
  /// the slow steps of malloc and free. Never waits for the lock.
  [[gnu::noinline]] void tick() noexcept {
    if constexpr (R.pages.give_back != give_back_policy::over_time) return;
    const std::uint64_t now = OS::milliseconds();
    if (now < window_end_.load(relaxed) || is_locked()) return;
    if (!lock_.try_acquire()) return;
    if (now >= window_end_.load(relaxed)) {
      unmap_long_runs(purge(low_water_), R.pages.unmap_from);
      missed_ -= missed_ / 8;
      given_early_ = 0;
      low_water_ = figures().free_resident.get();
      window_end_.store(now + window_ms(), relaxed);
    }
    lock_.release();
  }

  /// When all threads but one have ended: gives back what is beyond what is in use, as their work is done. If it is wanted again, more stays the next time.
  [[gnu::noinline, gnu::cold]] void after_threads() noexcept {
    if (keeps_all()) return;
    if constexpr (R.pages.give_back == give_back_policy::at_once) return;
    holding guard(lock_);
    give_back_early(std::max<std::uint64_t>(in_use(), worth_a_call) + missed_);
  }

  /// Locks in memory what the heap has in memory, and from then on what it takes into use, as far as
  /// the system allows. False: the system refused a part now. A heap that was not locked is not locked
  /// then, in no part; one that was locked stays so.
  [[nodiscard, gnu::cold]] bool lock_pages() noexcept {
    holding guard(lock_);
    std::size_t bytes = 0;
    bool is_done = true;
    // A page that cannot be touched cannot be brought into memory.
    const auto in_memory = [](const span& s) {
      return s.state == span_state::free_returned ? 0 : s.bytes() - s.guard_pages * heap_page;
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

  /// Undoes lock_pages, and what the recipe says. False: the system refused a part; the heap stays locked.
  [[nodiscard, gnu::cold]] bool unlock_pages() noexcept {
    holding guard(lock_);
    if (!unlock_spans()) return false;
    set_locked(false);
    return true;
  }

  /// In the child, whose only thread this is: a lock that another thread held is free, and no page is locked.
  [[gnu::cold]] void after_fork_in_child() noexcept {
    lock_.reset_after_fork();
    is_not_as_recipe_.store(false, relaxed);
  }

  /// Gives all free memory back to the system. Returns the bytes given back.
  [[gnu::noinline, gnu::cold]] std::size_t trim() noexcept {
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

  /// Has blocks from this memory, whole pages of it, and from nowhere else; to be called first. The memory stays the caller's: none of it
  /// is given back, however free. False: it has no room for a span of the smallest class, or there is no memory for records.
  [[nodiscard, gnu::cold]] bool adopt(void* memory, std::size_t bytes) noexcept {
    holding guard(lock_);
    const std::uintptr_t first = align_up(address_of(memory), heap_page);
    const std::uintptr_t last = align_down(address_of(memory) + bytes, heap_page);
    is_callers_ = true;
    const std::size_t least = class_table<R>::of(1).first_pages * heap_page;
    if (last < first || last - first < least || !free_.reserve(1)) return false;
    auto* const start = reinterpret_cast<std::byte*>(first);
    if (!free_.reserve_map(start, last - first)) return false;
    add_run(start, last - first, span_state::free_resident, false);
    return true;
  }

  /// Bytes that may be in memory for blocks, free ones included: in use never more, and what is free is given back to stay below.
  /// UINT64_MAX: as the recipe says. Takes effect with the next request.
  void set_limit(std::uint64_t bytes) noexcept { limit_plus_one_.store(bytes + 1, relaxed); }

  [[nodiscard]] std::uint64_t limit() const noexcept {
    const std::uint64_t set = limit_plus_one_.load(relaxed);
    return set == 0 ? R.pages.limit : set - 1;
  }

  /// Zeroed memory for a record of the heap's own, never freed; null when the system has none.
  [[nodiscard]] void* allocate_metadata(std::size_t bytes) noexcept {
    holding guard(lock_);
    return free_.allocate_metadata(bytes);
  }

  /// Returns everything to the system, what is in use and this heap's records included: the heap must not be used afterwards.
  void unmap_all() noexcept {
    if (!is_callers_) {
      free_.unmap_runs();
    } else if (is_locked()) {
      (void)unlock_spans();
    }
    free_.unmap_records();
  }

  [[nodiscard]] page_map<OS>& map() noexcept { return free_.map(); }
  [[nodiscard]] constexpr const page_map<OS>& map() const noexcept { return free_.map(); }
  [[nodiscard]] heap_figures& figures() noexcept { return free_.figures(); }
  [[nodiscard]] const heap_figures& figures() const noexcept { return free_.figures(); }
  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::size_t worth_a_call = 256 * KiB;  ///< less is not given back ahead of its time

  /// One of `lines` lines of the first page, or of those behind it, by a hash of the page.
  static std::uint16_t begin_of(const span* s, std::size_t lines) noexcept {
    const std::uint64_t hash = fibonacci_hash(address_of(s->start) >> heap_page_shift) >> 32;
    return static_cast<std::uint16_t>((hash * lines >> 32) * cache_line);
  }

  static constexpr std::size_t largest_move = 64 * GiB;  ///< bounds what is set aside for the page map

  figure& count(span_state state) noexcept { return state == span_state::cut ? figures().spans : figures().large; }

  // --- taking

  span* take(std::size_t pages, std::size_t alignment) noexcept {
    span* const s = brought_in([&] {
      span* found = free_.take(span_state::free_resident, pages, alignment);
      if (found == nullptr && pages * heap_page >= worth_a_call && alignment <= heap_page)
        found = free_.take_adjacent(pages);
      return found != nullptr ? found : free_.take(span_state::free_returned, pages, alignment);
    });
    note_low_water();
    return s;
  }

  /// The span that `taken()` takes, in memory if the heap wants that.
  template <class F>
  span* brought_in(F taken) noexcept {
    const std::uint64_t returned = figures().free_returned.get();
    span* const s = taken();
    if (wants_resident() && s != nullptr && may_be_away(returned)) make_resident(s->start, s->bytes());
    return s;
  }

  /// Whether what was taken when so much was returned may be out of memory: a part of it was returned. Or, where the
  /// system's pages are longer than ours, it shared one with another free run that was returned.
  [[nodiscard]] bool may_be_away(std::uint64_t returned) const noexcept {
    return figures().free_returned.get() != returned || (is_locked() && supply::grain() > heap_page);
  }

  /// Whether pages are to be in memory before the program touches them.
  [[nodiscard]] bool wants_resident() const noexcept { return R.pages.prefault || is_locked(); }

  void make_resident(std::byte* p, std::size_t bytes) noexcept {
    supply::make_resident(p, bytes, is_locked(), figures());
  }

  void note_low_water() noexcept { low_water_ = std::min(low_water_, figures().free_resident.get()); }

  span* handed_out(span* s, span_state use, std::size_t lines) noexcept {
    s->state = use;
    s->size_class = 0;
    s->live = s->carved = 0;
    s->free = nullptr;
    s->offset = begin_of(s, lines);
    s->guard_pages = 0;
    count(use).add(s->bytes());
    if (use == span_state::large) map().set_tag(s->start, large_tag);
    stay_below_peak();
    stay_below_limit();
    return s;
  }

  // --- giving

  void release_held(span* s) noexcept {
    if (s->state == span_state::large) map().set_tag(s->start, 0);
    count(s->state).subtract(s->bytes());
    s->state = span_state::free_resident;
    s->zeroed = false;
    free_.insert(s);
    if (!keeps_all()) give_back_early(keeps_free());
  }

  /// Keeps so much free memory. The rest goes back.
  void give_back_early(std::uint64_t keep) noexcept {
    const std::uint64_t free = figures().free_resident.get();
    if (free <= keep + worth_a_call) return;
    given_early_ += purge(free - keep);
    unmap_long_runs(free - keep, R.pages.max_free_resident);
  }

  /// So much free memory may stay for now.
  [[nodiscard]] std::uint64_t keeps_free() const noexcept {
    if constexpr (R.pages.give_back == give_back_policy::at_once) return R.pages.max_free_resident;
    return std::max<std::uint64_t>(R.pages.max_free_resident, in_use()) + missed_;
  }

  /// Whether free memory goes back only when somebody asks, or for a limit.
  [[nodiscard]] bool keeps_all() const noexcept {
    if constexpr (R.pages.give_back == give_back_policy::over_time) return is_locked();
    return R.pages.give_back == give_back_policy::when_asked;
  }

  /// False: the guard page stays. The run is lost then: to hand it out would crash the program.
  [[gnu::cold]] bool remove_guard(span* s) noexcept {
    const std::size_t bytes = s->guard_pages * heap_page;
    if (bytes == 0) return true;
    if (!OS::unprotect(s->end() - bytes, bytes)) return false;
    if (wants_resident()) make_resident(s->end() - bytes, bytes);  // it may be older than the lock
    return true;
  }

  bool shrink(span* s, std::size_t pages) noexcept {
    if (pages == s->pages) return true;
    if (!free_.reserve(1)) return false;
    span* const rest = free_.split(s, pages);
    map().set_ends(s);
    release_held(rest);
    return true;
  }

  bool extend(span* s, std::size_t pages) noexcept {
    const std::size_t more = pages - s->pages;
    const std::uint64_t returned = figures().free_returned.get();
    if (!fits_limit(more * heap_page) || !free_.extend(s, more)) return false;
    if (wants_resident() && may_be_away(returned)) make_resident(s->end() - more * heap_page, more * heap_page);
    figures().large.add(more * heap_page);
    note_low_water();
    stay_below_peak();
    stay_below_limit();
    return true;
  }

  // --- to and from the system

  [[gnu::noinline, gnu::cold]] bool grow(std::size_t pages, std::size_t alignment) noexcept {
    const std::size_t need = supply::mapped_for(pages * heap_page + alignment - heap_page);
    const std::size_t share =
        std::clamp(figures().mapped.get() / 8, std::uint64_t{R.pages.growth}, std::uint64_t{R.pages.max_growth});
    const std::size_t comfortable = need < R.pages.growth ? supply::mapped_for(share) : need;
    // What only the alignment needs, which can be gigabytes, is not worth the memory.
    const bool is_resident = wants_resident() && alignment <= heap_page;
    return map_more(comfortable, is_resident) || (comfortable > need && map_more(need, is_resident));
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
    const auto state = is_resident ? span_state::free_resident : span_state::free_returned;
    add_run(static_cast<std::byte*>(fresh), bytes, state, true);
    figures().mappings.add(1);
    return true;
  }

  /// New memory; record and room in the map have been reserved.
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

  [[gnu::noinline, gnu::cold]] std::size_t purge(std::size_t bytes) noexcept {
    std::size_t done = 0;
    while (done < bytes && !is_callers_) {
      span* s = free_.longest(span_state::free_resident);
      if (s == nullptr) break;
      free_.remove(s);
      // Of a run much longer than what is to go, the front stays: it is what the next requests are cut from.
      const std::size_t pages = align_up(bytes - done, std::max(supply::grain(), 16 * heap_page)) / heap_page;
      if (s->pages > pages && free_.reserve(1)) {
        span* const tail = free_.split(s, s->pages - pages);
        free_.put(s);
        s = tail;
      }
      const std::size_t gone = give_back(s);
      if (gone == 0) break;
      done += gone;
    }
    return done;
  }

  [[nodiscard]] std::uint64_t in_use() const noexcept { return figures().spans.get() + figures().large.get(); }

  /// After memory has come into use: gives back what free memory beside it would put above the peak.
  void stay_below_peak() noexcept {
    const std::uint64_t used = in_use();
    most_in_use_ = std::max(most_in_use_, used);
    if (keeps_all()) return;
    const std::uint64_t headroom = most_in_use_ / R.pages.headroom_divisor + missed_;
    const std::uint64_t limit = most_in_use_ + std::min(headroom, most_in_use_ / 4 * 3);
    const std::uint64_t resident = used + figures().free_resident.get();
    if (resident > limit + worth_a_call) given_early_ += purge(resident - limit);
  }

  [[nodiscard]] bool fits_limit(std::uint64_t more) const noexcept { return in_use() + more <= limit(); }

  void stay_below_limit() noexcept {
    const std::uint64_t resident = in_use() + figures().free_resident.get();
    if (resident > limit()) [[unlikely]]
      purge(resident - limit());
  }

  /// After a request has been served with so many bytes that were not in memory: what was given back early should have stayed.
  void note_missed(std::uint64_t bytes) noexcept {
    const std::uint64_t missed = std::min(bytes, given_early_);
    given_early_ -= missed;
    missed_ += missed;
  }

  std::size_t give_back_everything() noexcept {
    const std::size_t done = purge(SIZE_MAX / 2);
    low_water_ = 0;
    unmap_long_runs(SIZE_MAX, R.pages.unmap_from);
    return done;
  }

  /// Returns address space, up to about `bytes` of it. Shorter runs keep theirs: each hole costs the system a mapping.
  [[gnu::noinline, gnu::cold]] void unmap_long_runs(std::size_t bytes, std::size_t shortest) noexcept {
    for (std::size_t done = 0; done < bytes;) {
      span* const s = free_.longest(span_state::free_returned);
      if (s == nullptr || s->bytes() < shortest) break;
      const std::size_t length = s->bytes();
      free_.remove(s);
      if (!unmap(s)) {
        free_.put(s);
        break;
      }
      done += length;
    }
  }

  /// Returns a resident run that is in no bin, its address space kept; the bytes returned. 0: the system refused, or
  /// the run has no whole system page; it is resident and in its bin again then.
  std::size_t give_back(span* s) noexcept {
    const std::size_t bytes = s->bytes();
    const auto [first, last] = free_.system_pages(s);
    if (first >= last || !discard(reinterpret_cast<void*>(first), last - first)) {
      free_.put(s);
      return 0;
    }
    figures().returned_total.add(bytes);
    s->state = span_state::free_returned;
    s->zeroed = first <= address_of(s->start) && last >= address_of(s->end());
    free_.insert(s);
    return bytes;
  }

  bool discard(void* p, std::size_t bytes) noexcept {
    if (is_locked() && !os_pages<OS>::unlock(p, bytes)) return false;
    return OS::discard(p, bytes);
  }

  bool unmap(span* s) noexcept {
    const std::size_t bytes = s->bytes();
    const std::size_t page = supply::grain();
    if (!is_aligned(s->start, page) || bytes % page != 0) return false;
    if (!OS::unmap(s->start, bytes)) return false;
    figures().mapped.subtract(bytes);
    map().clear_ends(s);
    free_.recycle(s);
    return true;
  }

  // --- locked in memory

  [[nodiscard]] bool is_locked() const noexcept { return R.pages.locked != is_not_as_recipe_.load(relaxed); }
  void set_locked(bool locked) noexcept { is_not_as_recipe_.store(R.pages.locked != locked, relaxed); }

  /// All of them, locked or not. False: the system refused a part.
  bool unlock_spans() noexcept {
    bool is_done = true;
    free_.for_each_range([](const span& s) { return s.bytes(); },
                         [&](std::byte* p, std::size_t bytes) { is_done = os_pages<OS>::unlock(p, bytes) && is_done; });
    return is_done;
  }

  lock_type lock_;
  std::uint64_t low_water_ = 0;                ///< least free_resident since the window began
  bool is_callers_ = false;                    ///< all memory is the caller's
  std::atomic<bool> is_not_as_recipe_{false};  ///< locked, where the recipe does not say so; or not, where it does
  std::uint64_t most_in_use_ = 0;
  std::uint64_t given_early_ = 0;  ///< bytes given back ahead of a window's end, and not needed since
  std::uint64_t missed_ = 0;       ///< bytes given back early that were needed again; fades. So much more may stay
  std::atomic<std::uint64_t> window_ms_plus_one_{
      0};  ///< 0: the recipe's; so that a heap is all zero and costs no file pages
  std::atomic<std::uint64_t> window_end_{0};
  std::atomic<std::uint64_t> limit_plus_one_{0};  ///< 0: the recipe's
  free_runs<R, OS> free_;
};

}  // namespace heapwright
