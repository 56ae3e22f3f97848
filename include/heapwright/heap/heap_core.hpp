// The thread-caching heap: thread caches over the centres of the size classes over the page heap.
//
//   allocate   thread_cache::pop -> pop_slow -> central_class::draw -> page_heap::allocate -> the system
//   free       thread_cache::push -> push_slow -> central_class::give_back -> page_heap::release -> the system
//   whole      a run of pages per block, kept by the thread cache, or else page_heap::allocate_whole and release
//   large      page_heap::allocate and release: too long for any class, or aligned to more than a page
//
// Calls go downwards only. Locks are taken in that direction as well: caches, then one class, then the page heap.
//
// A heap is all zero until it is used and needs no constructor, so that the process's malloc works before main. It does not know
// which cache belongs to the calling thread: whoever owns the heap keeps that in a thread-local variable and passes it
// in (malloc/process_heap.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <heapwright/heap/thread_cache.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class heap_core {
  using classes = class_table<R>;
  using wrong = misuse<R, OS>;

 public:
  using cache = thread_cache<R, OS>;

  constexpr heap_core() noexcept = default;
  heap_core(const heap_core&) = delete;
  heap_core& operator=(const heap_core&) = delete;

  // --- caches of threads

  /// For threads that have no cache: nothing to pop, and push keeps nothing. A constant, to be reached without a question.
  [[nodiscard]] constexpr cache empty_cache() const noexcept { return cache(centre_); }

  /// A cache for the calling thread; null when the system has no memory. Close it when the thread ends.
  [[nodiscard, gnu::cold]] cache* open_cache() noexcept {
    holding guard(centre_.caches_lock);
    cache* c = centre_.idle_caches;
    if (c != nullptr) {
      centre_.idle_caches = c->next;
      c->unpark(centre_);
    } else {
      if (cache_count_ + 1 == owners_end) return nullptr;
      void* const p = centre_.page_heap.allocate_metadata(sizeof(cache));
      if (p == nullptr) return nullptr;
      c = new (p) cache(centre_, ++cache_count_);
    }
    c->next = open_caches_;
    open_caches_ = c;
    figures().threads.add(1);
    figures().threads_total.add(1);
    return c;
  }

  /// Leaves everything in it to the next thread, or gives it back for others to use. The cache must not be used afterwards.
  void close_cache(cache* c) noexcept {
    if (!try_park(c)) {
      c->flush(centre_);
      holding guard(centre_.caches_lock);
      set_idle(c);
    }
    if (figures().threads.get() == 1) centre_.page_heap.after_threads();
  }

  // --- blocks; every function here takes the cache of the calling thread

  /// What pop did not have: `size` bytes aligned to 16. Null when the system has no memory, or beyond PTRDIFF_MAX.
  [[nodiscard]] void* allocate_slow(cache& mine, std::size_t size) noexcept {
    if (const unsigned c = classes::index(size); c != 0) [[likely]]
      return allocate_class(mine, c);
    const span* const s = allocate_large(mine, size, default_alignment);
    return s == nullptr ? nullptr : s->block_begin();
  }

  /// The same for a class, other than 0.
  [[nodiscard, gnu::noinline]] void* allocate_class(cache& mine, unsigned c) noexcept {
    if (void* const p = mine.pop_class(c)) return p;  // of a cache that an earlier thread has left
    if (void* const p = mine.pop_slow(c, centre_)) [[likely]]
      return p;
    // The system has no more; blocks of other classes may add up to pages.
    do {
      trim(mine);
      if (void* const p = mine.pop_slow(c, centre_)) return p;
    } while (is_worth_another_try(classes::of(c).size));
    return nullptr;
  }

  /// `size` bytes aligned to `alignment`, any power of two. Null as above.
  [[nodiscard]] void* allocate_aligned(cache& mine, std::size_t size, std::size_t alignment) noexcept {
    if (const unsigned c = classes::index_aligned(size, alignment); c != 0) return allocate_class(mine, c);
    const span* const s = allocate_large(mine, size, alignment);
    return s == nullptr ? nullptr : s->block_begin();
  }

  /// `size` zeroed bytes aligned to 16; pages fresh from the system are not cleared again. Null as above.
  [[nodiscard]] void* allocate_zeroed(cache& mine, std::size_t size) noexcept {
    if (void* const p = mine.pop(size)) return std::memset(p, 0, size);
    const unsigned c = classes::index(size);
    if (c != 0 && !classes::is_whole(c)) {
      void* const p = allocate_class(mine, c);
      return p == nullptr ? nullptr : std::memset(p, 0, size);
    }
    span* const s = c != 0 ? allocate_whole(mine, c) : allocate_large(mine, size, default_alignment);
    if (s == nullptr) return nullptr;
    if (s->zeroed) return s->block_begin();
    if (size < worth_discarding || !centre_.page_heap.clear(s)) std::memset(s->block_begin(), 0, size);
    return s->block_begin();
  }

  /// What push did not keep: another thread's block, a large one, or one too many. Null is ignored. False: not a block of
  /// this heap; checked builds die instead.
  bool deallocate_slow(cache& mine, void* p) noexcept {
    const page_tag tag = map().tag(p);
    if (mine.push_away(p, tag)) return true;
    if (tag == large_tag && map().span_at(p)->block_begin() == p) {
      deallocate_large(p);
    } else if (tag != large_tag && tag != 0) [[likely]] {
      mine.push_slow(static_cast<block*>(p), tag, centre_);
    } else if (p != nullptr) {
      wrong::note_foreign(p);
      return false;
    }
    return true;
  }

  /// Bytes that may be used behind p; 0 for what is not a block of this heap.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept {
    const page_tag tag = map().tag(p);
    if (tag == 0) return 0;
    if (tag == large_tag) {
      const span* const s = map().span_at(p);
      return s->block_begin() == p ? s->block_bytes() : 0;
    }
    return classes::of(class_of(tag)).size;
  }

  [[nodiscard]] bool owns(const void* p) const noexcept { return usable_size(p) != 0; }

  /// A block of `size` bytes with the contents of p, as far as they fit; p is freed if the block is another. Null when the
  /// system has no memory; p is as it was then. Null as well for what is not a block of this heap; checked builds die instead.
  [[nodiscard]] void* reallocate(cache& mine, void* p, std::size_t size) noexcept {
    const std::size_t usable = usable_size(p);
    if (usable == 0) [[unlikely]]
      return wrong::note_foreign(p), nullptr;
    check_live(p);
    const bool fits = size <= usable && stays_aligned(p, size);
    // Staying is worth up to half of the block unused.
    if (fits && size >= usable / 2) return p;
    if (size > classes::largest_cut && size <= PTRDIFF_MAX) {
      span* const s = map().span_at(p);
      if (span* const resized = s->state == span_state::large ? resize(mine, s, size) : nullptr)
        return resized->block_begin();
    }
    void* fresh = mine.pop(size);
    if (fresh == nullptr) fresh = allocate_slow(mine, size);
    // A block that cannot be made smaller is still large enough.
    if (fresh == nullptr) return fits ? p : nullptr;
    std::memcpy(fresh, p, size < usable ? size : usable);
    if (!mine.push(p)) deallocate_slow(mine, p);
    return fresh;
  }

  // --- for threads without a cache: those that have ended theirs, or could not get one. Each call takes a lock.

  [[nodiscard, gnu::cold]] void* allocate_uncached(std::size_t size,
                                                   std::size_t alignment = default_alignment) noexcept {
    const unsigned c = classes::index_aligned(size, alignment);
    if (c == 0 || classes::is_whole(c)) {
      const span* const s = c == 0 ? allocate_large(size, alignment) : centre_.page_heap.allocate_whole(c, 0);
      if (s == nullptr) return nullptr;
      if (c != 0) wrong::note_allocated(reinterpret_cast<block*>(s->block_begin()));
      return s->block_begin();
    }
    span* drawn_from = nullptr;
    const auto drawn = centre_.classes[c].draw(c, 1, 0, drawn_from, centre_.page_heap);
    if (drawn_from != nullptr) centre_.classes[c].detach(drawn_from, centre_.page_heap);
    block* const b = drawn.fresh != nullptr ? new (drawn.fresh) block{nullptr} : drawn.returned;
    if (b == nullptr) return nullptr;
    centre_.classes[c].give_back(c, b->next, cache::length(b->next), centre_.page_heap);
    wrong::note_allocated(b);
    return b;
  }

  /// False: not a block of this heap; checked builds die instead.
  [[gnu::cold]] bool deallocate_uncached(void* p) noexcept {
    const page_tag tag = map().tag(p);
    if (tag == large_tag && map().span_at(p)->block_begin() == p) {
      deallocate_large(p);
    } else if (tag != large_tag && tag != 0) [[likely]] {
      const unsigned c = class_of(tag);
      wrong::note_freed(static_cast<block*>(p), map());
      cache::wipe(static_cast<block*>(p), c);
      if (classes::is_whole(c)) {
        deallocate_large(p);
      } else {
        centre_.classes[c].give_back(c, static_cast<block*>(p), 1, centre_.page_heap);
      }
    } else if (p != nullptr) {
      wrong::note_foreign(p);
      return false;
    }
    return true;
  }

  /// Like reallocate.
  [[nodiscard, gnu::cold]] void* reallocate_uncached(void* p, std::size_t size) noexcept {
    const std::size_t usable = usable_size(p);
    if (usable == 0) return wrong::note_foreign(p), nullptr;
    check_live(p);
    void* const fresh = allocate_uncached(size);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, p, size < usable ? size : usable);
    deallocate_uncached(p);
    return fresh;
  }

  // --- the whole

  /// Gives all memory back to the system that is free, and not in another thread's cache. Returns the bytes given back.
  [[gnu::noinline, gnu::cold]] std::size_t trim(cache& mine) noexcept {
    mine.flush(centre_);
    {
      holding guard(centre_.caches_lock);
      centre_.flush_parked(UINT64_MAX);
    }
    for (unsigned c = 1; c < classes::cut_end; ++c) centre_.classes[c].trim(centre_.page_heap);
    return centre_.page_heap.trim();
  }

  void set_purge_window(std::uint64_t ms) noexcept { centre_.page_heap.set_window(ms); }

  /// See page_heap::adopt.
  [[nodiscard]] bool adopt(void* memory, std::size_t bytes) noexcept { return centre_.page_heap.adopt(memory, bytes); }

  /// See page_heap.
  [[nodiscard]] bool lock_pages() noexcept { return centre_.page_heap.lock_pages(); }
  [[nodiscard]] bool unlock_pages() noexcept { return centre_.page_heap.unlock_pages(); }

  /// Bytes in memory for blocks, free ones included, that the heap may have instead of what the recipe says.
  void set_limit(std::uint64_t bytes) noexcept { centre_.page_heap.set_limit(bytes); }
  [[nodiscard]] std::uint64_t limit() const noexcept { return centre_.page_heap.limit(); }

  /// Blocks of class c that are with the program, or in a thread's stock.
  [[nodiscard]] std::uint64_t live_blocks(unsigned c) noexcept { return centre_.classes[c].live(); }

  [[nodiscard]] heap_figures& figures() noexcept { return centre_.page_heap.figures(); }

  /// Those of class c, which is cut from spans; those of the next are `class_figures_stride` bytes behind them.
  [[nodiscard]] const class_figures& figures_of(unsigned c) const noexcept { return centre_.classes[c].figures(); }
  static constexpr std::size_t class_figures_stride = sizeof(typename cache::centre::central_type);

  /// Returns everything to the system, blocks in use and caches included. Nothing of the heap may be used afterwards.
  [[gnu::cold]] void unmap_all() noexcept { centre_.page_heap.unmap_all(); }

  // --- for who looks at all of it with every lock held (census.hpp)

  [[nodiscard]] std::uint64_t live_blocks_held(unsigned c) const noexcept { return centre_.classes[c].live_held(); }

  template <class F>
  void for_each_span_held(F f) const {
    map().for_each_span([&](const span& s) { f(s); });
  }

  /// Also those that wait for the next thread.
  template <class F>
  void for_each_cache_held(F f) const {
    for (const cache* c = open_caches_; c != nullptr; c = c->next) f(*c);
    for (const cache* c = centre_.idle_caches; c != nullptr; c = c->next) f(*c);
  }

  [[nodiscard]] page_tag tag_of(const void* p) const noexcept { return map().tag(p); }
  [[nodiscard]] const span* span_of(const void* p) const noexcept { return map().span_at(p); }

  // --- every lock at once; for fork, so that the child finds nothing half done

  void lock_all() noexcept {
    centre_.caches_lock.acquire();
    for (auto& c : centre_.classes) c.fork_lock().acquire();
    centre_.page_heap.fork_lock().acquire();
  }

  void unlock_all() noexcept {
    centre_.page_heap.fork_lock().release();
    for (auto& c : centre_.classes) c.fork_lock().release();
    centre_.caches_lock.release();
  }

  /// `mine` is the cache of the thread that called fork, or null. Those of all others are emptied for use: their threads are gone.
  [[gnu::cold]] void after_fork_in_child(cache* mine) noexcept {
    centre_.page_heap.after_fork_in_child();
    for (auto& c : centre_.classes) c.fork_lock().reset_after_fork();
    centre_.caches_lock.reset_after_fork();
    for (cache* c = open_caches_; c != nullptr;) {
      cache* const following = c->next;
      if (c != mine) {
        c->repair_after_fork();
        c->flush(centre_);
        set_idle(c);
      }
      c = following;
    }
  }

 private:
  void check_live([[maybe_unused]] void* p) const noexcept {
    if constexpr (wrong::checks) {
      if (map().tag(p) != large_tag) wrong::check_live(p, map());
    }
  }

  /// Whether a block is aligned as one of this size has to be: where there are odd multiples of 8, a longer one need not be.
  [[nodiscard]] static bool stays_aligned([[maybe_unused]] const void* p, [[maybe_unused]] std::size_t size) noexcept {
    if constexpr (classes::natural_alignment == default_alignment) return true;
    return align_up(size, classes::natural_alignment) % default_alignment != 0 || is_aligned(p, default_alignment);
  }

  [[gnu::noinline]] span* allocate_whole(cache& mine, unsigned c) noexcept {
    span* s = centre_.page_heap.allocate_whole(c, mine.owner());
    while (s == nullptr) {
      trim(mine);
      s = centre_.page_heap.allocate_whole(c, mine.owner());
      if (s == nullptr && !is_worth_another_try(classes::of(c).size)) break;
    }
    return s;
  }

  span* allocate_large(cache& mine, std::size_t size, std::size_t alignment) noexcept {
    span* s = allocate_large(size, alignment);
    while (s == nullptr && size <= PTRDIFF_MAX) {
      trim(mine);
      s = allocate_large(size, alignment);
      if (s == nullptr && !is_worth_another_try(size)) break;
    }
    return s;
  }

  /// Asks the recipe's user, who may have freed something.
  [[nodiscard]] static bool is_worth_another_try([[maybe_unused]] std::size_t bytes) noexcept {
    if constexpr (R.out_of_memory == nullptr) {
      return false;
    } else {
      return R.out_of_memory->ask(bytes);
    }
  }

  /// Like blocks of several pages in a span (class_table.hpp), large ones begin at different lines of the processor's cache,
  /// unless the caller asks for an alignment.
  [[gnu::noinline]] span* allocate_large(std::size_t size, std::size_t alignment) noexcept {
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX / 2) return nullptr;
    centre_.page_heap.tick();
    span* const s = allocate_run(size, alignment);
    // It carries no mark, but may become a block of a class, which does: what a block there was before may have left one.
    if (s != nullptr) wrong::note_allocated(reinterpret_cast<block*>(s->block_begin()));
    return s;
  }

  [[nodiscard]] span* allocate_run(std::size_t size, std::size_t alignment) noexcept {
    if constexpr (R.hardening.guard_large) return centre_.page_heap.allocate_guarded(size, alignment);
    const std::size_t lines = alignment <= cache_line ? classes::lines_of_whole : 1;
    const std::size_t bytes = std::max<std::size_t>(size, 1) + (lines - 1) * cache_line;
    return centre_.page_heap.allocate(divide_up(bytes, heap_page), std::max(alignment, heap_page), span_state::large,
                                      lines);
  }

  /// Makes a block that is a run of pages longer or shorter, where it is or by moving its pages; or, if that is not much, by copying
  /// it to where it can grow without being moved again. Null: it is as it was. Precondition: size is beyond largest_cut.
  [[nodiscard, gnu::noinline, gnu::cold]] span* resize(cache& mine, span* s, std::size_t size) noexcept {
    if constexpr (R.hardening.guard_large) return nullptr;
    const unsigned c = classes::index(size);
    const std::size_t pages = c != 0 ? classes::of(c).first_pages : divide_up(size + s->offset, heap_page);
    if (!centre_.page_heap.try_resize(s, pages)) {
      if (s->bytes() < worth_moving || pages <= s->pages) return nullptr;
      if (span* const roomy = copy_to_room(s, size)) return roomy;
      if (!centre_.page_heap.try_remap(s, pages)) return nullptr;
    }
    centre_.page_heap.set_whole(s, c, mine.owner());
    return s;
  }

  span* copy_to_room(span* s, std::size_t size) noexcept {
    if (s->bytes() > worth_copying) return nullptr;
    span* const roomy = centre_.page_heap.allocate_with_room(divide_up(size + classes::largest_offset, heap_page));
    if (roomy == nullptr) return nullptr;
    std::memcpy(roomy->block_begin(), s->block_begin(), s->block_bytes());
    deallocate_large(s->block_begin());
    return roomy;
  }

  [[gnu::noinline]] void deallocate_large(void* p) noexcept {
    span* const s = map().span_at(p);
    if constexpr (R.hardening.zero_freed) {
      if (s->bytes() < worth_discarding || !centre_.page_heap.clear(s))
        std::memset(s->block_begin(), 0, s->block_bytes());
    }
    centre_.page_heap.release(s);
    centre_.page_heap.tick();
  }

  /// From this size on, zeroed memory is had from the system page by page as it is used, as programs with large tables expect.
  static constexpr std::size_t worth_discarding = 4 * MiB;

  /// From this size on, moving pages is cheaper than copying them; up to the other, copying costs no more than faults in what it
  /// grows by do, and some 100 microseconds.
  static constexpr std::size_t worth_moving = 256 * KiB;
  static constexpr std::size_t worth_copying = 1 * MiB;

  [[nodiscard]] const page_map<OS>& map() const noexcept { return centre_.page_heap.map(); }

  bool try_park(cache* c) noexcept {
    holding guard(centre_.caches_lock);
    if (!c->try_park(centre_)) return false;
    set_idle(c);
    return true;
  }

  /// The caller holds the lock of the caches, or is alone.
  void set_idle(cache* c) noexcept {
    cache** link = &open_caches_;
    while (*link != c) link = &(*link)->next;
    *link = c->next;
    c->next = centre_.idle_caches;
    centre_.idle_caches = c;
    figures().threads.subtract(1);
  }

  cache* open_caches_ = nullptr;
  std::uint32_t cache_count_ = 0;
  typename cache::centre centre_;
};

}  // namespace heapwright
