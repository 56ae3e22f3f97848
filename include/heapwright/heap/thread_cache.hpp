// Front of the heap: the free lists of one thread. malloc pops and free pushes here, without locks and without atomic
// read-modify-writes.
//
// A class has two lists. Allocation pops from the free list; freeing pushes onto the deferred frees, and `room` counts
// how many more they take. When the free list is empty the deferred frees become the free list. So a slow step comes
// after a bounded number of allocations whatever the program does, and popping needs no counter (Leijen et al.,
// "Mimalloc: Free List Sharding in Action").
//
//   allocate   pop ── free list empty ── refill ─┬─ deferred frees become the free list
//                                                ├─ central free list: blocks that came back, or fresh ones
//                                                └─ page heap: one block of a page-run class
//   free       push ── not kept ─┬─ push_remote ── batch full ─┐
//                                └─ push_slow ── no room ──────┴─ flush to the central free list
//   look       heartbeat ── every few hundred blocks ── scavenge one class
//
// Fresh blocks, which nobody has touched, are in no list, as a link would touch them: `fresh` is the next of them. The
// first in a page is handed out as it is, so that the first touch of a page, which may cost a page fault and a page of
// memory, is the program's. Where a page holds many, the blocks behind it go into the free list, some at a time.
//
// Remote frees are blocks of spans that another thread refills from. They go back in batches, so that two threads do not
// come to share cache lines through the allocator. Where the recipe keeps remote frees, all threads are one owner.
//
// Invariants, for each class c, between calls:
//   room = limit - length(deferred) >= 0
//   remote_room = batch - 1 - length(remote) >= 0; 0 for page-run classes
//   use is unused: only `deferred` and `remote` can have blocks
//   fresh, fresh_count: the last blocks that their span has given; or null and 0
//
// A thread without a cache has an empty one: nothing to pop, and an owner that no page has. So the fast path does not ask
// whether the thread has been seen before; its first operation misses.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <heapwright/heap/cache_limits.hpp>
#include <heapwright/heap/class_state.hpp>
#include <heapwright/heap/misuse.hpp>
#include <heapwright/heap/scavenger.hpp>
#include <heapwright/heap/shared_heap.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class thread_cache : public registered_cache {
  using classes = class_table<R>;
  using limits = cache_limits<R>;
  using shared = shared_heap<R, OS>;
  using caller_mistakes = misuse<R, OS>;

 public:
  /// The empty cache of threads without one of their own. Never written to.
  explicit constexpr thread_cache(const shared& heap) noexcept : map_(&heap.map()) {}

  thread_cache(shared& heap, std::uint32_t number) noexcept
      : owner_((R.thread_cache.keep_remote ? 1 : number) << owner_shift), map_(&heap.map()), shared_(&heap) {
    id = number;
    for (unsigned c = 1; c < classes::count; ++c) {
      of_[c].room = of_[c].limit = limits::first_limit(c);
      of_[c].remote_room = full_remote_room(c);
    }
  }

  // --- the fast path

  /// Up to here each class holds 16 bytes more than the last, so that the size gives the class. 0: the recipe lists sizes.
  static constexpr std::size_t even_max = R.classes.even_up_to();

  /// Up to here a table gives the class.
  static constexpr std::size_t small_max = std::max<std::size_t>(1024, R.classes.exact.last());

  /// Precondition: size <= even_max.
  [[nodiscard]] static constexpr class_offset offset_of_even(std::size_t size) noexcept {
    constexpr std::size_t scale = sizeof(class_state) / even_step;
    return class_offset{align_up(scale * size, sizeof(class_state))};
  }

  /// Precondition: size <= small_max.
  [[nodiscard]] static constexpr class_offset offset_of_small(std::size_t size) noexcept {
    return class_offset{small_offsets[(size + table_step - 1) / table_step]};
  }

  [[nodiscard]] static constexpr class_offset offset_of(unsigned c) noexcept {
    return class_offset{c * sizeof(class_state)};
  }

  /// The class; 1 for offset 0.
  [[nodiscard]] static constexpr unsigned class_at(class_offset offset) noexcept {
    return std::max(1U, static_cast<unsigned>(static_cast<std::size_t>(offset) / sizeof(class_state)));
  }

  /// A block of this class; null when the free list is empty.
  [[nodiscard, gnu::always_inline]] void* pop(class_offset offset) noexcept {
    block* const b = state_at(offset).free_list;
    if (b == nullptr) [[unlikely]]
      return nullptr;
    block* const following = b->next;
    state_at(offset).free_list = following;
    __builtin_prefetch(following);  // the next pop reads it, and its caller writes to it
    caller_mistakes::note_allocated(b);
    return b;
  }

  /// A block for `size` bytes; null when the free list is empty, or there is no class for that size.
  [[nodiscard]] void* pop(std::size_t size) noexcept {
    return pop(size <= small_max ? offset_of_small(size) : offset_of(classes::index(size)));
  }

  /// Keeps a freed block. False: it is not kept. It is null, large, another thread's, or not ours; or there is no room.
  [[nodiscard]] bool push(void* p) noexcept {
    const page_tag of_class = map_->tag(p) ^ owner_;  // nothing else is left if the owner bits are equal
    if (of_class > class_mask) [[unlikely]]
      return false;
    const class_offset offset{of_class};
    const std::int32_t room = state_at(offset).room - 1;
    state_at(offset).room = room;
    if (room < 0) [[unlikely]]
      return false;
    auto* const b = static_cast<block*>(p);
    caller_mistakes::note_freed(b, *map_);
    wipe(b, class_of(of_class));
    b->next = state_at(offset).deferred;
    std::atomic_signal_fence(std::memory_order_release);
    state_at(offset).deferred = b;
    return true;
  }

  // --- slow steps of free

  /// Keeps another thread's block until it goes back with others. False: it is not kept; it is this thread's own, or there
  /// is no room. Precondition: the tag is that of a class.
  [[nodiscard]] bool push_remote(void* p, page_tag tag) noexcept {
    const unsigned c = class_of(tag);
    if ((tag ^ owner_) <= class_mask || of_[c].remote_room == 0) return false;
    uncount_unkept(c);
    --of_[c].remote_room;
    auto* const b = static_cast<block*>(p);
    caller_mistakes::note_freed(b, *map_);
    wipe(b, c);
    b->next = of_[c].remote;
    std::atomic_signal_fence(std::memory_order_release);
    of_[c].remote = b;
    return true;
  }

  /// Frees a block of class c that neither push nor push_remote kept.
  [[gnu::noinline]] void push_slow(block* b, page_tag tag) noexcept {
    const unsigned c = class_of(tag);
    class_state& s = of_[c];
    caller_mistakes::note_freed(b, *map_);
    wipe(b, c);
    uncount_unkept(c);
    if ((tag ^ owner_) > class_mask) {
      heartbeat(classes::is_page_run(c) ? weight(c) : classes::of(c).batch);
      b->next = std::exchange(s.remote, nullptr);
      shared_->flush(c, b, remote_count(c) + 1);
      s.remote_room = full_remote_room(c);
      return;
    }
    heartbeat(s.room == 0 && !classes::is_page_run(c) ? length(c) : weight(c));
    s.use.is_used = true;
    if (s.room == 0 && classes::is_long(c)) {
      if (s.unkept < UINT8_MAX) ++s.unkept;
      shared_->flush(c, b, 1);
      return;
    }
    if (s.room == 0 && !raise_limit(c)) flush_deferred(c, length(c) / 2 + 1);
    b->next = s.deferred;
    s.deferred = b;
    --s.room;
  }

  /// Overwrites what was in a freed block, where the recipe wants that: all but what the heap writes itself.
  static void wipe([[maybe_unused]] block* b, [[maybe_unused]] unsigned c) noexcept {
    constexpr std::size_t own = caller_mistakes::checks ? caller_mistakes::own_bytes : sizeof(block);
    if constexpr (R.hardening.zero_freed)
      std::memset(reinterpret_cast<std::byte*>(b) + own, 0, classes::of(c).size - own);
  }

  // --- slow steps of malloc

  /// A block of class c, whose free list is empty, unless this thread has just taken over a parked cache. Null when the
  /// system has no memory.
  [[nodiscard, gnu::noinline]] void* refill(unsigned c) noexcept {
    class_state& s = of_[c];
    if (s.free_list != nullptr) return pop(offset_of(c));
    const bool wants_fresh = s.fresh != nullptr && length(c) < enough_deferred(c);
    heartbeat((wants_fresh ? 1 : length(c) + 1) * weight(c));
    s.use.is_used = true;
    if (s.use.is_sparse && length(c) > 0) flush_deferred(c, length(c));
    // A few deferred frees alone would bring the next slow step too soon; they wait until there are more.
    if (length(c) < enough_deferred(c)) {
      if (s.fresh == nullptr) refill_from_shared(c);
      if (s.fresh != nullptr) return pop_fresh(c);
    }
    if (s.free_list == nullptr) {
      s.free_list = s.deferred;
      std::atomic_signal_fence(std::memory_order_release);
      s.deferred = nullptr;
      s.room = s.limit;
    }
    return pop(offset_of(c));
  }

  // --- the whole cache

  /// Gives all blocks back, and forgets what the thread needed. The cache can go on being used.
  [[gnu::noinline]] void flush() noexcept {
    for (unsigned c = 1; c < classes::count; ++c) flush_class(c);
  }

  /// True when so little can be here that the next thread may have it.
  [[nodiscard]] bool is_worth_parking() const noexcept {
    return limits_.growth() <= std::int64_t{R.thread_cache.max_parked_bytes};
  }

  /// From now on the cache keeps no more of each class than at first.
  void fix_limits() noexcept { limits_.fix(); }

  /// In the child of a fork, for the cache of a thread that is no more: it may have been interrupted in the middle of a
  /// fast path, so the counters may be off by one. The lists are whole at every instruction: fences keep the order.
  void repair_after_fork() noexcept {
    for (unsigned c = 1; c < classes::count; ++c) {
      class_state& s = of_[c];
      if (s.deferred == s.free_list) s.deferred = nullptr;  // interrupted while the one became the other
      s.room = s.limit - static_cast<std::int32_t>(length_of(s.deferred));
      s.remote_room = static_cast<std::uint8_t>(full_remote_room(c) - length_of(s.remote));
      s.fresh_count = s.fresh == nullptr ? 0 : fresh_blocks_from(s.fresh);
    }
  }

  // --- for those who look at it from outside (census.hpp)

  /// The lists of class c. From another thread: as of different moments, and to be followed with care.
  [[nodiscard, gnu::no_sanitize_thread]] std::array<const block*, 3> lists_of(unsigned c) const noexcept {
    return {__atomic_load_n(&of_[c].free_list, __ATOMIC_RELAXED), __atomic_load_n(&of_[c].deferred, __ATOMIC_RELAXED),
            __atomic_load_n(&of_[c].remote, __ATOMIC_RELAXED)};
  }

  struct fresh_run {
    const std::byte* first;
    std::uint32_t count;
  };

  /// The fresh blocks of class c. From another thread: as of different moments.
  [[nodiscard, gnu::no_sanitize_thread]] fresh_run fresh_of(unsigned c) const noexcept {
    return {__atomic_load_n(&of_[c].fresh, __ATOMIC_RELAXED), __atomic_load_n(&of_[c].fresh_count, __ATOMIC_RELAXED)};
  }

  /// Bytes in blocks of classes [first, last). Only the thread itself may ask.
  [[nodiscard]] std::uint64_t cached_bytes(unsigned first, unsigned last) const noexcept {
    std::uint64_t bytes = 0;
    for (unsigned c = first; c < last; ++c) {
      const std::uint64_t blocks = length_of(of_[c].free_list) + length(c) + remote_count(c) + of_[c].fresh_count;
      bytes += blocks * classes::held_bytes(c);
    }
    return bytes;
  }

  [[nodiscard]] page_tag owner() const noexcept { return owner_; }

  // --- what cache_limits sets

  [[nodiscard]] std::int32_t limit(unsigned c) const noexcept { return of_[c].limit; }

  /// Of the deferred frees.
  [[nodiscard]] std::uint32_t length(unsigned c) const noexcept {
    return static_cast<std::uint32_t>(of_[c].limit - of_[c].room);
  }

  void set_limit(unsigned c, std::int32_t limit) noexcept {
    of_[c].room += limit - of_[c].limit;
    of_[c].limit = limit;
  }

 private:
  static constexpr std::size_t even_step = size_class_plan::smallest_step;
  static constexpr page_tag no_owner = ~class_mask;
  static constexpr std::size_t many = 16;

  /// Where the recipe lists sizes, malloc itself looks into the table: then it has an entry for each size, which saves
  /// rounding.
  static constexpr std::size_t table_step = R.classes.exact.empty() ? even_step : 1;

  static constexpr auto make_small_offsets() {
    std::array<std::uint16_t, small_max / table_step + 1> table{};
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<std::uint16_t>(classes::index(i * table_step) * sizeof(class_state));
    return table;
  }
  static_assert(classes::largest >= small_max, "recipe.classes.largest: at least 1024");
  static constexpr auto small_offsets = make_small_offsets();

  // --- the fast path

  /// `launder` prevents common-subexpression elimination, so that the compiler folds the address into each memory operand.
  [[nodiscard, gnu::always_inline]] class_state& state_at(class_offset offset) noexcept {
    auto* const first = reinterpret_cast<std::byte*>(std::launder(this)->of_);
    return *reinterpret_cast<class_state*>(first + static_cast<std::size_t>(offset));
  }

  // --- what is here of a class

  /// push counts a block before it finds that there is no room. The block may be another thread's by the time that the slow
  /// step looks at it: one that has begun to refill from the block's span.
  void uncount_unkept(unsigned c) noexcept {
    if (of_[c].room < 0) of_[c].room = 0;
  }

  static constexpr std::uint8_t full_remote_room(unsigned c) noexcept {
    return classes::is_page_run(c) ? 0 : static_cast<std::uint8_t>(classes::of(c).batch - 1);
  }

  [[nodiscard]] std::uint32_t remote_count(unsigned c) const noexcept {
    return full_remote_room(c) - of_[c].remote_room;
  }

  [[nodiscard]] static std::uint32_t length_of(const block* b) noexcept {
    std::uint32_t n = 0;
    for (; b != nullptr; b = b->next) ++n;
    return n;
  }

  /// Frees alone may bring a class here without a slow step.
  [[nodiscard]] bool is_empty(unsigned c) const noexcept {
    const class_state& s = of_[c];
    return !s.use.is_used && !s.use.was_used && length(c) == 0 && remote_count(c) == 0;
  }

  /// True when a page holds many blocks of class c: a slow step for each would cost more than the memory and the page
  /// faults that it saves.
  static constexpr bool are_many(unsigned c) noexcept { return classes::of(c).size * many <= heap_page; }

  /// Fewer deferred frees than this would bring the next slow step too soon: as many as a refill, or half as many.
  [[nodiscard]] std::uint32_t enough_deferred(unsigned c) const noexcept {
    return 1 + (are_many(c) ? of_[c].refill_count : of_[c].refill_count / 2U);
  }

  // --- refilling

  /// Long blocks are worth keeping only where they are asked for again: not those that a growing array leaves behind. So
  /// their limit is raised when one is needed after one was not kept.
  void refill_from_shared(unsigned c) noexcept {
    class_state& s = of_[c];
    if (s.unkept > 0 && raise_limit(c)) --s.unkept;
    if (classes::is_page_run(c)) {
      if (span* const run = shared_->pages().allocate_page_run(c, owner_)) set_fresh(s, run->block_begin(), 1);
      return;
    }
    const auto& info = classes::of(c);
    const auto wanted = std::max<std::uint16_t>(std::max(s.refill_count, std::min(info.first_kept, info.batch)), 1);
    s.refill_count = std::min<std::uint16_t>(static_cast<std::uint16_t>(wanted * 2), info.batch);
    const auto refilled = shared_->central(c).refill(c, wanted, owner_, s.attached, shared_->pages());
    s.free_list = refilled.returned;
    if (refilled.fresh == nullptr) return;
    if constexpr (caller_mistakes::checks) {
      for (std::uint32_t i = 0; i < refilled.fresh_count; ++i)
        caller_mistakes::note_fresh(reinterpret_cast<block*>(refilled.fresh + i * std::size_t{info.size}));
    }
    set_fresh(s, refilled.fresh, static_cast<std::uint16_t>(refilled.fresh_count));
  }

  /// A child of a fork believes the pointer, and finds the count from it (repair_after_fork).
  static void set_fresh(class_state& s, std::byte* first, std::uint16_t count) noexcept {
    s.fresh_count = count;
    std::atomic_signal_fence(std::memory_order_release);
    s.fresh = first;
    std::atomic_signal_fence(std::memory_order_release);
  }

  /// How many fresh blocks there are from this one on.
  [[nodiscard]] std::uint16_t fresh_blocks_from(const std::byte* first) const noexcept {
    const span* const s = map_->span_at(first);
    if (s->state == span_state::large) return 1;
    const std::size_t size = classes::of(s->size_class).size;
    return static_cast<std::uint16_t>(s->carved - (address_of(first) - address_of(s->block_begin())) / size);
  }

  /// The next fresh block. Where a page holds many, some that follow go into the free list, if the block before it is in
  /// the same page, which has been touched then as a rule.
  [[nodiscard]] void* pop_fresh(unsigned c) noexcept {
    class_state& s = of_[c];
    const std::size_t size = classes::of(c).size;
    std::byte* const first = s.fresh;
    const std::size_t in_page = address_of(first) % heap_page;
    const bool is_touched = in_page >= size;
    const std::size_t begin_here = is_touched && are_many(c) ? (heap_page - 1 - in_page) / size + 1 : 1;
    const auto n = static_cast<std::uint16_t>(std::min<std::size_t>({begin_here, many, s.fresh_count}));
    const auto left = static_cast<std::uint16_t>(s.fresh_count - n);
    std::byte* const end = first + n * size;
    s.fresh = left == 0 ? nullptr : end;
    std::atomic_signal_fence(std::memory_order_release);
    s.fresh_count = left;
    block* list = nullptr;
    for (std::byte* p = end - size; p != first; p -= size) list = new (p) block{list};
    std::atomic_signal_fence(std::memory_order_release);
    s.free_list = list;
    scavenger_.count_ahead(n - 1U);
    caller_mistakes::note_allocated(reinterpret_cast<block*>(first));
    return first;
  }

  bool raise_limit(unsigned c) noexcept {
    const heap_figures& f = shared_->figures();
    return limits_.raise(c, limits::share(classes::is_long(c), f.spans + f.large, f.threads), *this);
  }

  // --- flushing

  /// Flushes the newest n deferred frees: they are the ones in the processor's cache. The list is taken away first, so that
  /// a child forked meanwhile by another thread loses blocks rather than have them twice.
  void flush_deferred(unsigned c, std::uint32_t n) noexcept {
    block* const first = std::exchange(of_[c].deferred, nullptr);
    of_[c].deferred = shared_->flush(c, first, n);
    of_[c].room += static_cast<std::int32_t>(n);
  }

  /// Gives back all that is here of a class.
  [[gnu::noinline]] void drain(unsigned c) noexcept {
    class_state& s = of_[c];
    if (const std::uint32_t n = remote_count(c); n > 0) {
      shared_->flush(c, std::exchange(s.remote, nullptr), n);
      s.remote_room = full_remote_room(c);
    }
    if (const std::uint32_t n = length(c); n > 0) flush_deferred(c, n);
    if (block* const first = s.free_list; first != nullptr) {
      s.free_list = nullptr;
      shared_->flush(c, first, length_of(first));
    }
    if (std::byte* const first = s.fresh; first != nullptr) {
      s.fresh = nullptr;
      shared_->central(c).flush_fresh(first, std::exchange(s.fresh_count, std::uint16_t{0}), shared_->pages());
    }
    if (span* const attached = s.attached; attached != nullptr) {
      s.attached = nullptr;
      shared_->central(c).detach(attached, shared_->pages());
    }
    s.use.is_used = s.use.was_used = false;
  }

  void flush_class(unsigned c) noexcept {
    if (!is_empty(c)) drain(c);
    limits_.set(c, limits::first_limit(c), *this);
    of_[c].refill_count = 0;
    of_[c].unkept = 0;
    of_[c].use.is_sparse = false;
  }

  // --- looking at the clock

  /// What a block counts towards the next look.
  static constexpr std::uint32_t weight(unsigned c) noexcept {
    return classes::is_page_run(c) ? classes::of(c).first_pages : 1;
  }

  void heartbeat(std::uint32_t blocks) noexcept {
    if (scavenger_.count(blocks)) [[unlikely]]
      look_at_clock();
  }

  [[gnu::noinline, gnu::cold]] void look_at_clock() noexcept {
    shared_->pages().tick();
    if (!scavenger_.is_in_pass()) begin_pass();
    if (scavenger_.is_in_pass()) scavenge_next_class();
    scavenger_.end_look();
  }

  void begin_pass() noexcept {
    limits_.allow_raises();
    if (scavenger_.is_time_to_fade()) {
      for (class_state& s : of_) s.unkept /= 2;
    }
    const std::uint64_t now = OS::milliseconds();
    const std::uint64_t window = shared_->pages().window_ms();
    if (!scavenger_.begin_pass(now, window) || now < window) return;
    shared_->caches().try_flush_parked(now - window,
                                       [](registered_cache& c) { static_cast<thread_cache&>(c).flush(); });
  }

  void scavenge_next_class() noexcept {
    skip_empty_classes();
    if (!scavenger_.is_in_pass()) return;
    const unsigned c = scavenger_.current_class();
    scavenger_.go_on();
    switch (scavenger::step(of_[c].use, [&] { return !classes::is_page_run(c) && shared_->central(c).is_sparse(c); })) {
      case scavenge_step::keep: break;
      case scavenge_step::drain: drain(c); break;
      case scavenge_step::flush: flush_class(c); break;
    }
    skip_empty_classes();
  }

  void skip_empty_classes() noexcept {
    for (; scavenger_.is_in_pass() && is_empty(scavenger_.current_class()); scavenger_.go_on())
      flush_class(scavenger_.current_class());
  }

  // What the fast path touches comes first.
  page_tag owner_ = no_owner;
  const page_map<OS>* map_;
  shared* shared_ = nullptr;
  class_state of_[classes::count]{};

  limits limits_;
  scavenger scavenger_{classes::count};
};

}  // namespace heapwright
