// The free lists of one thread, and the fast path of malloc and free: without locks and without
// atomic read-modify-writes.
//
// A class has two lists. Allocation pops from the free list; freeing pushes onto the deferred
// frees, and `room` counts how many more they take. When the free list is empty the deferred frees
// become the free list. So a slow step comes after a bounded number of allocations whatever the
// program does, and popping needs no counter (Leijen et al., "Mimalloc: Free List Sharding in
// Action").
//
// Blocks of spans that another thread refills from are not kept here: they are remote frees
// (remote_frees.hpp). Where the recipe keeps remote frees, all threads are one owner.
//
// Fresh blocks, which nobody has touched, are in no list, as a link would touch them: `fresh` is
// the next of them.
//
// Blocks of mixed spans (mixed_spans.hpp) are pushed onto the free list itself: there is no refill
// of many, so that the list would be empty most of the time. `room` counts the frees to the next
// slow step, which counts the list.
//
// Invariants, for each class c, between calls:
//   room = limit - length(deferred) >= 0; of a class with mixed spans, deferred = null
//   fresh, fresh_count: the last blocks that their span has given; or null and 0
//
// A thread without a cache has empty lists: nothing to pop, and an owner that no page has. So the
// fast path does not ask whether the thread has been seen before; its first operation misses.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <heapwright/heap/block_links.hpp>
#include <heapwright/heap/class_state.hpp>
#include <heapwright/heap/misuse.hpp>

namespace heapwright {

/// The lists alone: nothing here takes a lock or calls the shared heap. thread_cache fills and
/// flushes them.
template <const recipe& R, platform OS>
class free_lists {
  friend struct heap_describer;

  using classes = class_table<R>;
  using caller_mistakes = misuse<R, OS>;
  using links = block_links<R>;

 public:
  // --- the fast path

  /// Up to here each class holds 16 bytes more than the last, so that the size gives the class. 0:
  /// the recipe lists sizes.
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
    if (!links::is_whole(b)) [[unlikely]]
      caller_mistakes::die_of_link(b, *map_);
    block* const following = links::next(b);
    state_at(offset).free_list = following;
    __builtin_prefetch(following);  // the next pop reads it, and its caller writes to it
    caller_mistakes::note_allocated(b);
    return b;
  }

  /// A block for `size` bytes; null when the free list is empty, or there is no class for that
  /// size.
  [[nodiscard]] void* pop(std::size_t size) noexcept {
    return pop(size <= small_max ? offset_of_small(size) : offset_of(classes::index(size)));
  }

  /// Keeps a freed block. False: it is not kept. It is null, large, another thread's, or not ours;
  /// or there is no room.
  [[nodiscard, gnu::always_inline]] bool push(void* p) noexcept {
    const page_tag tag = map_->tag(p);
    const page_tag of_class = tag ^ owner_;  // nothing else is left if the owner bits are equal
    if (of_class > class_mask) [[unlikely]]
      return classes::has_mixed && tag == mixed_tag && push_mixed(p);
    const class_offset offset{of_class};
    const std::int32_t room = state_at(offset).room - 1;
    state_at(offset).room = room;
    if (room < 0) [[unlikely]]
      return false;
    auto* const b = static_cast<block*>(p);
    if (!caller_mistakes::note_freed(b, *map_)) [[unlikely]]
      return ++state_at(offset).room, true;
    wipe(b, class_of(of_class));
    links::set_next(b, state_at(offset).deferred);
    std::atomic_signal_fence(std::memory_order_release);
    state_at(offset).deferred = b;
    return true;
  }

  /// push, of a block of a mixed span that is outside. The thread that frees it keeps it, and not
  /// the one that allocated it. Where the caller's mistakes are looked for, the slow step does it.
  [[nodiscard, gnu::noinline]] bool push_mixed(void* p) noexcept {
    if constexpr (!classes::has_mixed || caller_mistakes::checks) {
      return false;
    } else {
      const std::size_t size = map_->bits_at(p).size_at(p);
      const class_offset offset = size <= small_max ? offset_of_small(size) : offset_of(classes::index(size));
      if (state_at(offset).room <= 0) [[unlikely]]
        return false;
      push_free(offset, static_cast<block*>(p));
      return true;
    }
  }

  /// Overwrites what was in a freed block, where the recipe wants that: all but what the heap
  /// writes itself.
  static void wipe([[maybe_unused]] block* b, [[maybe_unused]] unsigned c) noexcept {
    constexpr std::size_t own = caller_mistakes::checks ? caller_mistakes::own_bytes : sizeof(block);
    if constexpr (R.hardening.zero_freed)
      std::memset(reinterpret_cast<std::byte*>(b) + own, 0, classes::of(c).size - own);
  }

  // --- for those who look at it from outside (census.hpp)

  /// The lists of class c. From another thread: as of different moments, and to be followed with
  /// care.
  [[nodiscard, gnu::no_sanitize_thread]] std::array<const block*, 2> lists_of(unsigned c) const noexcept {
    return {__atomic_load_n(&of_[c].free_list, __ATOMIC_RELAXED), __atomic_load_n(&of_[c].deferred, __ATOMIC_RELAXED)};
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
      const std::uint64_t blocks = length_of(of_[c].free_list) + length(c) + of_[c].fresh_count;
      bytes += blocks * classes::held_bytes(c);
    }
    return bytes;
  }

  [[nodiscard]] page_tag owner() const noexcept { return owner_; }

  // --- what cache_limits sets

  [[nodiscard]] std::int32_t limit(unsigned c) const noexcept { return of_[c].limit; }

  /// Of the deferred frees.
  [[nodiscard]] std::uint32_t length(unsigned c) const noexcept {
    return classes::is_mixed(c) ? 0 : static_cast<std::uint32_t>(of_[c].limit - of_[c].room);
  }

  void set_limit(unsigned c, std::int32_t limit) noexcept {
    of_[c].room += limit - of_[c].limit;
    of_[c].limit = limit;
  }

 protected:
  /// Empty lists, which are never written to.
  explicit constexpr free_lists(const page_map_of<R, OS>& map) noexcept : map_(&map) {}

  free_lists(const page_map_of<R, OS>& map, std::uint32_t id) noexcept
      : owner_((R.thread_cache.keep_remote ? 1 : id) << owner_shift), map_(&map) {
    for (unsigned c = 1; c < classes::count; ++c) {
      of_[c].room = of_[c].limit = classes::of(c).first_kept;
    }
  }

  /// push counts a block before it finds that there is no room. The block may be another thread's
  /// by the time that the slow step looks at it: one that has begun to refill from the block's
  /// span.
  void uncount_refused(unsigned c) noexcept {
    if (of_[c].room < 0) of_[c].room = 0;
  }

  [[nodiscard]] static std::uint32_t length_of(const block* b) noexcept {
    std::uint32_t n = 0;
    for (; b != nullptr; b = links::next(b)) ++n;
    return n;
  }

  /// Of a class with mixed spans: onto the free list.
  void push_free(class_offset offset, block* b) noexcept {
    class_state& s = state_at(offset);
    --s.room;
    wipe(b, static_cast<unsigned>(&s - of_));
    links::set_next(b, s.free_list);
    std::atomic_signal_fence(std::memory_order_release);
    s.free_list = b;
  }

  /// True when a page holds many blocks of class c: a slow step for each would cost more than the
  /// memory and the page faults that it saves.
  static constexpr bool are_many(unsigned c) noexcept { return classes::of(c).size * many <= heap_page; }

  /// The next fresh block. Where a page holds many, some that follow go into the free list, if the
  /// block before it is in the same page, which has been touched then as a rule.
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
    for (std::byte* p = end - size; p != first; p -= size) list = links::make(p, list);
    std::atomic_signal_fence(std::memory_order_release);
    s.free_list = list;
    caller_mistakes::note_allocated(reinterpret_cast<block*>(first));
    return first;
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

  /// In the child of a fork, for the cache of a thread that is no more: it may have been
  /// interrupted in the middle of a fast path, so the counters may be off by one. The lists are
  /// whole at every instruction: fences keep the order.
  void repair_after_fork() noexcept {
    for (unsigned c = 1; c < classes::count; ++c) {
      class_state& s = of_[c];
      if (s.deferred == s.free_list) s.deferred = nullptr;  // interrupted while the one became the other
      s.room = s.limit - static_cast<std::int32_t>(length_of(s.deferred));
      s.fresh_count = s.fresh == nullptr ? 0 : fresh_blocks_from(s.fresh);
    }
  }

  // What the fast path touches comes first.
  page_tag owner_ = no_owner;
  const page_map_of<R, OS>* map_;
  class_state of_[classes::count]{};

 private:
  static constexpr std::size_t even_step = size_class_plan::smallest_step;
  static constexpr page_tag no_owner = ~class_mask;
  static constexpr std::size_t many = 16;  ///< blocks

  /// Where the recipe lists sizes, malloc itself looks into the table: then it has an entry for
  /// each size, which saves rounding. A list of long sizes has one for each multiple of 8: 8 KiB at
  /// most.
  static constexpr std::size_t table_step = R.classes.exact.empty() ? even_step : small_max <= heap_page ? 1 : 8;

  static constexpr auto make_small_offsets() {
    std::array<std::uint16_t, small_max / table_step + 1> table{};
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<std::uint16_t>(classes::index(i * table_step) * sizeof(class_state));
    return table;
  }
  static_assert(classes::largest >= small_max, "recipe.classes.largest: at least 1024");
  static constexpr auto small_offsets = make_small_offsets();

  /// `launder` prevents common-subexpression elimination, so that the compiler folds the address
  /// into each memory operand.
  [[nodiscard, gnu::always_inline]] class_state& state_at(class_offset offset) noexcept {
    auto* const first = reinterpret_cast<std::byte*>(std::launder(this)->of_);
    return *reinterpret_cast<class_state*>(first + static_cast<std::size_t>(offset));
  }
};

}  // namespace heapwright
