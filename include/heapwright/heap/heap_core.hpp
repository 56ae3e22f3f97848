// All of a thread-caching heap: the shared heap, and what a thread asks of it with its cache.
//
//   front    thread_cache      free lists of one thread            pop, push; refill, flush
//   middle   shared_heap       central free lists, cache registry  one lock per class
//   back     page_heap         page runs, memory of the system     one lock
//   beside   large_blocks      blocks without a class: straight to the page heap
//
// Calls go downwards only, but for callbacks that the registry is given for the caches it keeps.
// Each function on blocks takes the cache of the calling thread. How a
// thread finds its cache is the business of those who own the heap: malloc/process_heap.hpp,
// basic_heap.hpp. A thread without one borrows one here.
//
// A heap is all zero until it is used and needs no constructor, so that the process's malloc works
// before main.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include <heapwright/heap/block_claim.hpp>
#include <heapwright/heap/borrowed_cache.hpp>
#include <heapwright/heap/large_blocks.hpp>
#include <heapwright/heap/sealed_blocks.hpp>
#include <heapwright/heap/thread_cache.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class heap_core {
  friend struct heap_describer;

  using classes = class_table<R>;
  using caller_mistakes = misuse<R, OS>;
  using large = large_blocks<R, OS>;

 public:
  using cache = thread_cache<R, OS>;

  constexpr heap_core() noexcept = default;
  heap_core(const heap_core&) = delete;
  heap_core& operator=(const heap_core&) = delete;

  // --- caches of threads

  /// For threads that have no cache: nothing to pop, and push keeps nothing. A constant, to be
  /// reached without a question.
  [[nodiscard]] constexpr cache empty_cache() const noexcept { return cache(shared_); }

  /// A cache for the calling thread; null when the system has no memory. Close it when the thread
  /// ends.
  [[nodiscard, gnu::cold]] cache* open_cache() noexcept {
    shared_.keys().begin();
    const auto allocate = [&](std::size_t bytes) { return shared_.pages().allocate_metadata(bytes); };
    const auto make = [&](std::uint32_t id) -> registered_cache* {
      void* const p = allocate(sizeof(cache));
      return p == nullptr ? nullptr : new (p) cache(shared_, id);
    };
    return static_cast<cache*>(shared_.caches().open(figures(), make, allocate));
  }

  /// Leaves its blocks to the next thread, if they are few, or else to all. The cache must not be
  /// used afterwards.
  void close_cache(cache* c) noexcept {
    check_quarantine(*c);
    c->close_inbox();
    if (!c->is_worth_parking() || !shared_.caches().try_park(c, figures())) {
      c->flush();
      shared_.caches().close(c, figures());
    }
    if (figures().threads.get() == 1) shared_.pages().after_threads();
  }

  /// A cache for one operation: the thread's own; or, where that is null, one that it borrows as
  /// long as this lives.
  class cache_for_now {
   public:
    cache_for_now(heap_core& heap, cache* own) noexcept
        : cache_(own != nullptr ? *own : heap.borrow()), lender_(own != nullptr ? nullptr : &heap.borrowed_) {}
    ~cache_for_now() {
      if (lender_ != nullptr) [[unlikely]]
        lender_->give_back();
    }
    cache_for_now(const cache_for_now&) = delete;
    cache_for_now& operator=(const cache_for_now&) = delete;

    [[nodiscard]] cache& operator*() const noexcept { return cache_; }

   private:
    cache& cache_;
    borrowed_cache<R, OS>* lender_;
  };

  /// f(cache&) with the borrowed cache.
  template <class F>
  [[gnu::always_inline]] decltype(auto) with_borrowed(F f) noexcept {
    const cache_for_now borrowed(*this, nullptr);
    return f(*borrowed);
  }

  // --- blocks: allocation, when the free list is empty

  /// `size` bytes aligned to 16. Null when the system has no memory, or beyond PTRDIFF_MAX.
  [[nodiscard]] void* allocate_slow(cache& mine, std::size_t size) noexcept {
    if (const unsigned c = classes::index(size); c != 0) [[likely]]
      return allocate_class(mine, c);
    return allocate_large(mine, size, default_alignment);
  }

  /// A block of class c, other than 0. Null as above.
  [[nodiscard, gnu::noinline]] void* allocate_class(cache& mine, unsigned c) noexcept {
    void* p = mine.refill(c);
    if (p == nullptr) [[unlikely]]
      p = after_trim(mine, classes::of(c).size, [&] { return mine.refill(c); });
    return p;
  }

  /// `size` bytes aligned to `alignment`, any power of two. Null as above.
  [[nodiscard]] void* allocate_aligned(cache& mine, std::size_t size, std::size_t alignment) noexcept {
    const unsigned c = classes::index_aligned(size, alignment);
    return c != 0 ? allocate_class(mine, c) : allocate_large(mine, size, alignment);
  }

  /// `size` zeroed bytes aligned to 16; pages fresh from the system are not cleared again. Null as
  /// above.
  [[nodiscard]] void* allocate_zeroed_slow(cache& mine, std::size_t size) noexcept {
    const unsigned c = classes::index(size);
    if (c != 0 && !classes::is_page_run(c)) {
      void* const p = allocate_class(mine, c);
      return p == nullptr ? nullptr : std::memset(p, 0, size);
    }
    // Blocks that the cache keeps would have to be cleared.
    span* const s = c != 0 ? allocate_page_run(mine, c) : allocate_large_span(mine, size, default_alignment);
    return s == nullptr ? nullptr : large::zeroed(shared_.pages(), s, size);
  }

  // --- blocks: the rest

  /// Frees what push did not keep: another thread's block, a large one, or one too many. Null is
  /// ignored. False: not a block of this heap, and nothing was said of it. What the caller says is
  /// looked at of large blocks.
  bool deallocate_slow(cache& mine, void* p, const block_claim& said = {}) noexcept {
    const page_tag tag = map().tag(p);
    if (classes::has_mixed && tag == mixed_tag) {
      return deallocate_mixed(mine, p);
    }
    if (is_class(tag)) [[likely]] {
      mine.push_slow(static_cast<block*>(p), tag);
    } else if (span* const s = large_at(p, tag)) {
      large::deallocate(shared_.pages(), s, said);
    } else if (tag == large_tag) {
      return caller_mistakes::note_within(p, free_names);
    } else if (p != nullptr) {
      return caller_mistakes::note_foreign(p, free_names);
    }
    return true;
  }

  /// Bytes that may be used behind p; 0 for what is not a block of this heap.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept {
    const page_tag tag = map().tag(p);
    if (classes::has_mixed && tag == mixed_tag) {
      return map().bits_at(p).block_at(p);
    }
    if (is_class(tag)) return classes::of(class_of(tag)).size;
    const span* const s = large_at(p, tag);
    return s == nullptr ? 0 : is_sealed ? s->block_bytes() : s->asked_bytes();
  }

  [[nodiscard]] bool owns(const void* p) const noexcept { return usable_size(p) != 0; }

  /// A pointer of which usable_size is 0. False: not of this heap, and nothing was said of it.
  [[gnu::cold]] bool note_no_block(void* p, const call_names& by) const noexcept {
    return map().tag(p) != 0 ? caller_mistakes::note_within(p, by) : caller_mistakes::note_foreign(p, by);
  }

  /// A block of `size` bytes with the contents of p, as far as they fit; p is freed if the block is
  /// another. Null when the system has no memory; p is as it was then. Null as well for what is not
  /// a block of this heap; checked builds die instead.
  [[nodiscard]] void* reallocate(cache& mine, void* p, std::size_t size) noexcept {
    const std::size_t usable = usable_size(p);
    if (usable == 0) [[unlikely]]
      return note_no_block(p, realloc_names), nullptr;
    return reallocate(mine, p, usable, size);
  }

  /// The same, for a block of this heap with so many usable bytes.
  [[nodiscard]] void* reallocate(cache& mine, void* p, std::size_t usable, std::size_t size) noexcept {
    if (!is_live(p)) return nullptr;
    const bool fits = size <= usable && stays_aligned(p, size);
    // Staying is worth up to half of the block unused.
    if (fits && size >= usable / 2) return stay(p, usable, size);
    if (size > classes::largest_cut && size <= PTRDIFF_MAX) {
      span* const s = map().span_at(p);
      if (s->state == span_state::large) {
        if (span* const resized = large::resize(shared_.pages(), s, size, mine.owner())) return resized->block_begin();
      }
    }
    void* fresh = mine.pop(size);
    if (fresh == nullptr) fresh = allocate_slow(mine, size);
    // A block that cannot be made smaller is still large enough.
    if (fresh == nullptr) return fits ? stay(p, usable, size) : nullptr;
    std::memcpy(fresh, p, size < usable ? size : usable);
    if (!mine.push(p)) deallocate_slow(mine, p);
    return fresh;
  }

  // --- blocks with a seal

  static constexpr bool is_sealed = R.hardening.sealed;

  /// `size` bytes aligned to `alignment`; 0: none was asked for. Null as allocate_slow.
  [[nodiscard, gnu::always_inline]] void* allocate_sealed(cache& mine, std::size_t size, block_origin origin,
                                                          std::size_t alignment) noexcept {
    const std::size_t padded = sealed_blocks<R, OS>::padded(size);
    if (padded <= cache::small_max && alignment <= classes::natural_alignment) [[likely]] {
      const class_offset offset = cache::offset_of_small(padded);
      if (void* const p = mine.pop(offset)) [[likely]] {
        if (!sealed().give_out_quickly(p, cache::class_at(offset), size, origin, alignment)) [[unlikely]]
          return give_out_sealed(p, size, origin, alignment);
        return p;
      }
    }
    return allocate_sealed_slow(mine, size, origin, alignment);
  }

  /// As allocate_sealed, without a quick part. `grows`: it was resized, and may be again.
  [[nodiscard, gnu::noinline]] void* allocate_sealed_slow(cache& mine, std::size_t size, block_origin origin,
                                                          std::size_t alignment, bool grows = false) noexcept {
    const std::size_t padded = sealed_blocks<R, OS>::padded(size);
    const bool is_natural = alignment <= classes::natural_alignment;
    const unsigned c = is_natural ? classes::index(padded) : classes::index_aligned(padded, alignment);
    if (void* const p = c != 0 ? mine.pop(cache::offset_of(c)) : nullptr) {
      if (!sealed().give_out_quickly(p, c, size, origin, alignment)) sealed().give_out(p, size, origin, alignment);
      return p;
    }
    void* const p = c != 0       ? allocate_class(mine, c)
                    : is_natural ? allocate_large(mine, padded, default_alignment, grows)
                                 : allocate_large(mine, padded, alignment);
    if (p == nullptr) return nullptr;
    if (c != 0) {
      sealed().give_out(p, size, origin, alignment);
    } else {
      span* const s = map().span_at(p);
      if (R.hardening.check_reuse) large::zeroed(shared_.pages(), s, s->block_bytes());
      sealed().give_out_clean(p, size, origin, alignment);
    }
    return p;
  }

  /// A block of no bytes, which cannot be touched. No census sees it. Null as empty_blocks says.
  [[nodiscard]] void* allocate_empty(block_origin origin) noexcept {
    return shared_.empty().allocate(origin, shared_.pages());
  }

  /// Null is ignored. What the caller does wrong ends the process.
  [[gnu::always_inline]] void deallocate_sealed(cache& mine, void* p, const block_claim& said) noexcept {
    if (mine.random().has_begun()) [[likely]] {
      if (const unsigned c = sealed().take_back_quickly(p, said); c != 0) [[likely]]
        return let_go(mine, mine.quarantine().exchange(c, static_cast<block*>(p), mine.random()));
    }
    deallocate_sealed_slow(mine, p, said.origin, said.size, said.alignment);
  }

  /// As deallocate_sealed, without a quick part; the last three are the claim.
  [[gnu::noinline]] void deallocate_sealed_slow(cache& mine, void* p, block_origin origin, std::size_t size,
                                                std::size_t alignment) noexcept {
    if (p == nullptr) return;
    if (shared_.empty().contains(p))
      return shared_.empty().take_back(p, {.origin = origin, .size = size, .alignment = alignment});
    const unsigned c = sealed().take_back(p, {.origin = origin, .size = size, .alignment = alignment});
    if (c == sealed_blocks<R, OS>::not_taken) return;
    if (c == 0) return static_cast<void>(deallocate_slow(mine, p));
    mine.random().begin();
    block* const b = mine.quarantine().exchange(c, static_cast<block*>(p), mine.random());
    // It may be released, and cleared again when it is next handed out.
    if (R.hardening.check_reuse && classes::is_page_run(c) && b != nullptr) sealed().check_untouched(b);
    let_go(mine, b);
  }

  /// As reallocate; p is a block of malloc.
  [[nodiscard]] void* reallocate_sealed(cache& mine, void* p, std::size_t size) noexcept {
    if (const auto quick = sealed().resize_quickly(p, size); quick.is_done) [[likely]] {
      return p;
    } else if (quick.had != sealed_blocks<R, OS>::not_live) {
      void* const fresh = allocate_sealed(mine, size, block_origin::malloc, 0);
      if (fresh == nullptr) return nullptr;
      std::memcpy(fresh, p, std::min(quick.had, size));
      deallocate_sealed(mine, p, {});
      return fresh;
    }
    return reallocate_sealed_slow(mine, p, size);
  }

  /// As reallocate_sealed, without a quick part.
  [[nodiscard, gnu::noinline]] void* reallocate_sealed_slow(cache& mine, void* p, std::size_t size) noexcept {
    const bool is_empty = shared_.empty().contains(p);
    if (is_empty && !shared_.empty().check_to_resize(p)) return nullptr;
    const std::size_t had = is_empty ? 0 : sealed().size_to_resize(p);
    if (had == sealed_blocks<R, OS>::not_live) return nullptr;
    if (!is_empty && sealed().resize(p, had, size, block_origin::malloc)) return p;
    if (size > classes::largest && size <= PTRDIFF_MAX - heap_page && map().tag(p) == large_tag) {
      if (void* const resized = resize_sealed(p, had, size)) return resized;
    }
    void* const fresh = allocate_sealed_slow(mine, size, block_origin::malloc, 0, true);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, p, std::min(had, size));
    deallocate_sealed_slow(mine, p, block_origin::malloc, block_claim::not_said, block_claim::not_said);
    return fresh;
  }

  /// What was asked for of a live block, whatever has given it out; 0 where it is none, and the
  /// process goes on.
  [[nodiscard]] std::size_t size_of_sealed(const void* p) noexcept {
    if (!shared_.empty().contains(p)) [[likely]]
      return sealed().size_of_live(p);
    shared_.empty().check_to_measure(const_cast<void*>(p));
    return 0;
  }
  [[nodiscard]] std::size_t size_if_live_sealed(const void* p) noexcept { return sealed().size_if_live(p); }

  /// Looks at what `mine` has in quarantine, as that will not be used again, or not soon.
  void check_quarantine([[maybe_unused]] cache& mine) noexcept {
    if constexpr (R.hardening.quarantine_bytes != 0)
      mine.quarantine().for_each([&](unsigned, const block* b) { sealed().check_untouched(b); });
  }

  /// Whether no other thread is in the heap, nor was in it when this process was forked: then each
  /// block is as a whole operation has left it.
  [[nodiscard]] bool is_whole() const noexcept { return !has_abandoned_ && shared_.figures().threads.get() == 1; }

  /// What a program may have written to, in at most so many blocks of a heap that is whole. It is
  /// looked for under every lock, as threads that end may free something still, and told without
  /// one, as a handler of SIGABRT may call malloc. Where a lock cannot be had, a signal has
  /// interrupted what holds it: nothing is looked at.
  [[gnu::cold]] void check_all([[maybe_unused]] std::size_t most) noexcept {
    if constexpr (is_sealed) {
      constexpr std::uint64_t patience_ms = 100;
      if (!try_lock_all(patience_ms)) return;
      std::array<const span*, 16> damaged;  // more are not told
      std::size_t n = 0;
      map().for_each_span([&](const span& s) {
        bool is_damaged = false;
        most -= sealed(&is_damaged).check_span(s, most);
        if (is_damaged && n < damaged.size()) damaged[n++] = &s;
      });
      unlock_all();
      for (std::size_t i = 0; i < n; ++i) (void)sealed().check_span(*damaged[i], SIZE_MAX);
    }
  }

  /// As check_quarantine, of what is in the free lists of the calling thread.
  void check_lists([[maybe_unused]] const cache& mine) noexcept {
    if constexpr (is_sealed) {
      for (unsigned c = 1; c < classes::cut_end; ++c) {
        for (const block* b : mine.lists_of(c))
          for (; b != nullptr; b = block_links<R>::next(b)) sealed().check_listed(b);
      }
    }
  }

  void set_origin_of_sealed(void* p, block_origin origin) noexcept {
    if (shared_.empty().contains(p)) return shared_.empty().set_origin(p, origin);
    sealed().set_origin(p, origin);
  }

  // --- the whole heap

  /// Gives all memory back to the system that is free, and not in another thread's cache. Returns
  /// the bytes given back.
  [[gnu::noinline, gnu::cold]] std::size_t trim(cache& mine) noexcept {
    check_quarantine(mine);
    mine.flush();
    if (!borrowed_.is_this(mine)) borrowed_.flush();
    shared_.caches().flush_parked(UINT64_MAX, [](registered_cache& c) { static_cast<cache&>(c).flush(); });
    return shared_.trim();
  }

  [[nodiscard]] page_heap<R, OS>& pages() noexcept { return shared_.pages(); }
  [[nodiscard]] heap_figures& figures() noexcept { return shared_.figures(); }

  /// Of class c, which is cut from spans; those of the next are `class_figures_stride` bytes behind
  /// them.
  [[nodiscard]] const class_figures& figures_of(unsigned c) const noexcept { return shared_.central(c).figures(); }
  static constexpr std::size_t page_map_bytes_per_page = page_map_of<R, OS>::bytes_per_page;
  static constexpr std::size_t class_figures_stride = sizeof(typename shared_heap<R, OS>::central_type);

  /// Blocks allocated from class c: live, or in a thread cache.
  [[nodiscard]] std::uint64_t blocks_outside(unsigned c) noexcept { return shared_.outside(c); }

  /// The tag of p's page; for a block of a mixed span, that of its class. 0: not a block of this
  /// heap.
  [[nodiscard]] page_tag tag_of(const void* p) const noexcept {
    const page_tag tag = map().tag(p);
    if constexpr (classes::has_mixed) {
      if (tag == mixed_tag) return heapwright::tag_of(0, mixed_class_of(p));
    }
    return tag;
  }

  // --- for a census, which holds every lock

  template <class F>
  void for_each_span_held(F f) const {
    map().for_each_span([&](const span& s) { f(s); });
  }

  template <class F>
  void for_each_cache_held(F f) const {
    shared_.caches().for_each_held([&](const registered_cache& c) { f(static_cast<const cache&>(c)); });
  }

  /// Calls f(block) for blocks that are free and look as if they were outside, as the tail does.
  template <class F>
  void for_each_waiting_held(F f) const {
    shared_.for_each_waiting_held(f);
  }

  [[nodiscard]] const std::byte* tail_of_mixed_held() const { return shared_.tail_of_mixed_held(); }

  [[nodiscard]] const span* span_of(const void* p) const noexcept { return map().span_at(p); }
  [[nodiscard]] const mixed_bits& bits_of_mixed(const void* p) const noexcept { return map().bits_at(p); }

  // --- every lock at once; for fork, so that the child finds nothing half done

  void lock_all() noexcept {
    borrowed_.fork_lock().acquire();
    shared_.lock_all();
  }

  /// As lock_all, unless that takes longer than so many milliseconds: false, and nothing is locked.
  [[nodiscard]] bool try_lock_all(std::uint64_t for_ms) noexcept {
    const std::uint64_t deadline = OS::milliseconds() + for_ms;
    while (!borrowed_.fork_lock().try_acquire()) {
      if (OS::milliseconds() > deadline) return false;
      OS::relax();
    }
    if (shared_.try_lock_all(deadline)) return true;
    borrowed_.fork_lock().release();
    return false;
  }

  void unlock_all() noexcept {
    shared_.unlock_all();
    borrowed_.fork_lock().release();
  }

  /// `mine` is the cache of the thread that called fork, or null. Those of all others are emptied
  /// for use: their threads are gone.
  [[gnu::cold]] void after_fork_in_child(cache* mine) noexcept {
    shared_.keys().after_fork_in_child();
    borrowed_.fork_lock().reset_after_fork();
    if (mine != nullptr) mine->random().restart();
    shared_.after_fork_in_child(mine, [this](registered_cache& c) {
      has_abandoned_ = true;
      static_cast<cache&>(c).abandon_after_fork();
    });
  }

 private:
  // In the frame of a function that calls nothing else.
  [[gnu::noinline, gnu::cold]] void* give_out_sealed(void* p, std::size_t size, block_origin origin,
                                                     std::size_t alignment) noexcept {
    sealed().give_out(p, size, origin, alignment);
    return p;
  }

  /// Of a large block. Null: it is as it was.
  [[nodiscard, gnu::noinline, gnu::cold]] void* resize_sealed(void* p, std::size_t had, std::size_t size) noexcept {
    span* const s = map().span_at(p);
    const std::size_t old_bytes = s->block_bytes();
    const bool is_done = shared_.pages().resize_large(s, sealed_blocks<R, OS>::padded(size));
    std::byte* const begin = s->block_begin();
    const std::size_t kept = is_done ? std::min(had, size) : had;
    std::memset(begin + kept, 0, std::min(old_bytes, s->block_bytes()) - kept);  // slack and seal
    const bool is_moved = begin != p;  // by the system, which clears what it adds
    if (s->block_bytes() > old_bytes && !is_moved && !s->zeroed)
      std::memset(begin + old_bytes, 0, s->block_bytes() - old_bytes);
    sealed().give_out_clean(begin, is_done ? size : had, block_origin::malloc, 0);
    return is_done ? begin : nullptr;
  }

  /// A block that has left the quarantine, or null.
  [[gnu::always_inline]] void let_go(cache& mine, block* b) noexcept {
    if (b == nullptr) return;
    // A free list writes its link here.
    const bool is_written_to = R.hardening.check_reuse && b->link != 0;
    if (is_written_to || !mine.push(b)) [[unlikely]]
      let_go_slow(mine, b);
  }

  [[gnu::noinline]] void let_go_slow(cache& mine, block* b) noexcept {
    if (R.hardening.check_reuse && b->link != 0) sealed().check_untouched(b);
    deallocate_slow(mine, b);
  }

  [[nodiscard]] sealed_blocks<R, OS> sealed(bool* found = nullptr) noexcept { return {map(), shared_.keys(), found}; }

  [[nodiscard]] cache& borrow() noexcept {
    shared_.keys().begin();
    return borrowed_.borrow(shared_);
  }

  /// True for the tag of a block of a class: neither large nor foreign.
  static bool is_class(page_tag tag) noexcept { return tag != 0 && tag != large_tag; }

  /// Of what lies in a mixed span; 0: no block begins at p.
  [[nodiscard]] unsigned mixed_class_of(const void* p) const noexcept {
    const std::size_t size = map().bits_at(p).block_at(p);
    return size != 0 ? classes::index(size) : 0;
  }

  bool deallocate_mixed(cache& mine, void* p) noexcept {
    const unsigned c = mixed_class_of(p);
    if (c == 0) [[unlikely]] {
      return caller_mistakes::note_no_block(p);
    }
    mine.push_slow_mixed(static_cast<block*>(p), c);
    return true;
  }

  /// The span of a large block that begins at p, or null.
  [[nodiscard]] span* large_at(const void* p, page_tag tag) const noexcept {
    if (tag != large_tag) return nullptr;
    span* const s = map().span_at(p);
    return s->block_begin() == p ? s : nullptr;
  }

  void* stay(void* p, std::size_t usable, std::size_t size) noexcept {
    if (usable > classes::largest && size != usable) [[unlikely]]
      large::stay(*map().span_at(p), size);
    return p;
  }

  [[nodiscard]] bool is_live([[maybe_unused]] void* p) const noexcept {
    if constexpr (caller_mistakes::checks) return map().tag(p) == large_tag || caller_mistakes::is_live(p, map());
    return true;
  }

  /// True when a block is aligned as one of this size has to be: where there are odd multiples of
  /// 8, a longer one need not be.
  [[nodiscard]] static bool stays_aligned([[maybe_unused]] const void* p, [[maybe_unused]] std::size_t size) noexcept {
    if constexpr (classes::natural_alignment == default_alignment) return true;
    return align_up(size, classes::natural_alignment) % default_alignment != 0 || is_aligned(p, default_alignment);
  }

  void* allocate_large(cache& mine, std::size_t size, std::size_t alignment, bool grows = false) noexcept {
    span* const s = allocate_large_span(mine, size, alignment, grows);
    return s == nullptr ? nullptr : s->block_begin();
  }

  span* allocate_large_span(cache& mine, std::size_t size, std::size_t alignment, bool grows = false) noexcept {
    const auto allocate = [&] { return large::allocate(shared_.pages(), size, alignment, grows); };
    span* const s = allocate();
    return s != nullptr || size > PTRDIFF_MAX ? s : after_trim(mine, size, allocate);
  }

  [[gnu::noinline]] span* allocate_page_run(cache& mine, unsigned c) noexcept {
    const auto allocate = [&] { return shared_.pages().allocate_page_run(c, mine.owner()); };
    span* const s = allocate();
    return s != nullptr ? s : after_trim(mine, classes::of(c).size, allocate);
  }

  /// What `allocate()` gives after free memory of other classes has gone back, and while the
  /// platform or the recipe's out_of_memory handler says that another try is worth it.
  template <class F>
  [[gnu::noinline, gnu::cold]] auto after_trim(cache& mine, std::size_t bytes, F allocate) noexcept {
    for (;;) {
      trim(mine);
      const auto p = allocate();
      if (p != nullptr || !(platform_gives_back() || is_worth_another_try(mine, bytes))) return p;
    }
  }

  [[nodiscard]] static bool platform_gives_back() noexcept {
    if constexpr (requires { OS::give_back(); }) return OS::give_back();
    return false;
  }

  /// Asks the recipe's user, who may have freed something. Not with a lock held: the user may call
  /// this heap.
  [[nodiscard]] bool is_worth_another_try([[maybe_unused]] const cache& mine,
                                          [[maybe_unused]] std::size_t bytes) const noexcept {
    if constexpr (R.out_of_memory == nullptr) {
      return false;
    } else {
      const bool holds_lock = R.concurrency == concurrency_mode::thread_caching && borrowed_.is_this(mine);
      return !holds_lock && R.out_of_memory->ask(bytes);
    }
  }

  [[nodiscard]] const page_map_of<R, OS>& map() const noexcept { return shared_.map(); }

  borrowed_cache<R, OS> borrowed_;
  shared_heap<R, OS> shared_;
  bool has_abandoned_ = false;  ///< other threads were in the heap when this process was forked
};

}  // namespace heapwright
