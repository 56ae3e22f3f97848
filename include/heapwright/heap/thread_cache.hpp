// A thread's private stock of blocks: the fast path of malloc and free, without locks or atomic read-modify-writes.
//
// For each size class there are two lists. `stock` is what allocation pops from; `returns` is what freeing pushes onto, with
// `room` counting how many more it takes. When the stock is empty the returns become the stock, so a slow step comes
// after a bounded number of allocations whatever the program does (the heartbeat; Leijen et al., "Mimalloc: Free List
// Sharding in Action"), and popping needs no counter.
//
// Fresh blocks, which nobody has touched, are not in a list, as a link would touch them: `fresh` is where the next of them is. The first in a page is
// handed out as it is, so that the first touch of a page, which may cost a page fault and a page of memory, is the program's; then those that
// follow it in its page go into the stock, some at a time, where a page holds many. Longer blocks are handed out one by one.
//
// Blocks of spans that another thread draws from are not kept: they collect in `away` and go back to the centre in batches, so
// that two threads do not come to share cache lines through the allocator. Where the recipe lets threads keep each other's blocks, all have one owner.
//
// Gathering. After a peak what is left lies all over the heap, and so do the blocks that are freed and asked for again here. Once per
// window of time the thread looks at its classes, one after the other. In one whose spans are less than half in use it keeps
// no freed blocks until the next look: they go back to their spans, most of which come free, and new ones are drawn from few.
//
// Blocks of whole classes (class_table.hpp) are kept in the same lists, but come from the page heap and go back to it one by one.
//
// Invariants, for each class c:  room[c] = limit[c] - length(returns[c]) >= 0, between calls
//                                away_room[c] = batch - 1 - length(away[c]) >= 0; 0 for whole classes
//                                neither in_use[c] nor idle[c]: all that is here of class c is in returns[c] and away[c]
//                                fresh[c], fresh_count[c]: the last blocks that their span has handed out, or null and 0
//                                the sum over c of what limit[c] is above its first value, in bytes, <= its share when
//                                one was last raised, for the short classes and for the long ones
//
// A thread that has no cache points at an empty one: nothing to pop, and an owner that no page has. So the fast path does
// not ask whether the thread has been seen before; its first operation simply misses.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <heapwright/heap/central.hpp>
#include <heapwright/heap/misuse.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class thread_cache {
  using classes = class_table<R>;
  using central = central_class<R, OS>;
  using pages = page_heap<R, OS>;

 public:
  static constexpr unsigned class_count = classes::count;

  /// What the slow steps draw from and give back to.
  struct centre {
    using central_type = central;
    central classes[class_table<R>::cut_end];  ///< of those cut from spans

    // Caches that no thread has, for the next that comes. Some are parked: with all that was in them when their thread ended.
    heap_lock<R, OS> caches_lock;
    thread_cache* idle_caches = nullptr;
    figure parked;

    pages page_heap;

    /// Flushes those parked at `until` or before. The caller holds the lock.
    void flush_parked(std::uint64_t until) noexcept {
      for (thread_cache* c = idle_caches; c != nullptr; c = c->next) {
        if (c->is_parked() && c->parked_at_ <= until) {
          c->unpark(*this);
          c->flush(*this);
        }
      }
    }
  };

  /// The empty cache of threads that have none of their own. Never written to.
  explicit constexpr thread_cache(const centre& of) noexcept : map_(&of.page_heap.map()) {}

  thread_cache(const centre& of, std::uint32_t id) noexcept
      : owner_((R.thread_cache.keeps_others ? 1 : id) << owner_shift), map_(&of.page_heap.map()), id_(id) {
    for (unsigned c = 1; c < class_count; ++c) {
      of_[c].room = of_[c].limit = first_limit(c);
      away_room_[c] = all_away_room(c);
    }
  }

  // --- the fast path

  /// Up to here each class holds 16 bytes more than the last, so that a rounded size says which it is. 0 where the recipe lists sizes.
  static constexpr std::size_t even_max = R.classes.even_up_to();

  /// Up to here a table says it.
  static constexpr std::size_t small_max = std::max<std::size_t>(1024, R.classes.exact.last());

  /// A block for `size` bytes; null when the stock has none, or there is no class for that size.
  [[nodiscard]] void* pop(std::size_t size) noexcept {
    if (size > small_max) [[unlikely]]
      return pop_class(classes::index(size));
    return pop_small(size);
  }

  /// Precondition: size <= small_max.
  [[nodiscard]] void* pop_small(std::size_t size) noexcept {
    return pop_scaled(scaled_of_small[(size + table_step - 1) / table_step]);
  }

  [[nodiscard]] void* pop_class(unsigned c) noexcept { return pop_scaled(c * sizeof(lists)); }

  /// The same for a class that comes scaled: as its number times 32, which is twice the rounded size where the classes are even. Null for 0.
  [[nodiscard]] void* pop_scaled(std::size_t scaled) noexcept {
    block* const b = lists_at(scaled).stock;
    if (b == nullptr) [[unlikely]]
      return nullptr;
    block* const following = b->next;
    lists_at(scaled).stock = following;
    __builtin_prefetch(following);  // the next pop reads it, and its caller writes to it
    misuse<R, OS>::note_allocated(b);
    return b;
  }

  /// The class whose blocks have half so many bytes, of those up to even_max; 0 is for the smallest.
  [[nodiscard]] static constexpr unsigned class_of_twice(std::size_t rounded_twice) noexcept {
    return rounded_twice == 0 ? 1 : static_cast<unsigned>(rounded_twice / (2 * even_step));
  }

  /// Keeps a freed block. False: it has not been kept; it is null, large, another thread's, not ours, or there is no room.
  [[nodiscard]] bool push(void* p) noexcept {
    const page_tag scaled = map_->tag(p) ^ owner_;  // the class alone, if the owner bits are equal
    if (scaled > class_mask) [[unlikely]]
      return false;
    const std::int32_t room = lists_at(scaled).room - 1;
    lists_at(scaled).room = room;
    if (room < 0) [[unlikely]]
      return false;
    auto* const b = static_cast<block*>(p);
    misuse<R, OS>::note_freed(b, *map_);
    wipe(b, class_of(scaled));
    b->next = lists_at(scaled).returns;
    std::atomic_signal_fence(std::memory_order_release);
    lists_at(scaled).returns = b;
    return true;
  }

  /// Keeps another thread's block until it goes back with others. False: it has not been kept; it is this thread's own, large,
  /// not ours, or there is no room.
  [[nodiscard]] bool push_away(void* p, page_tag tag) noexcept {
    const unsigned c = class_of(tag);
    if ((tag ^ owner_) <= class_mask || away_room_[c] == 0) return false;
    uncount_unkept(c);
    --away_room_[c];
    auto* const b = static_cast<block*>(p);
    misuse<R, OS>::note_freed(b, *map_);
    wipe(b, c);
    b->next = of_[c].away;
    std::atomic_signal_fence(std::memory_order_release);
    of_[c].away = b;
    return true;
  }

  /// Overwrites what was in a block that is freed, if the recipe wants that: all but what the heap writes itself.
  static void wipe([[maybe_unused]] block* b, [[maybe_unused]] unsigned c) noexcept {
    constexpr std::size_t own = misuse<R, OS>::checks ? misuse<R, OS>::own_bytes : sizeof(block);
    if constexpr (R.hardening.zero_freed)
      std::memset(reinterpret_cast<std::byte*>(b) + own, 0, classes::of(c).size - own);
  }

  // --- the slow steps

  /// A block of class c, whose stock is empty; null when the system has no memory.
  [[nodiscard, gnu::noinline]] void* pop_slow(unsigned c, centre& from) noexcept {
    invariant(of_[c].stock == nullptr, "a stock that still has blocks is filled");
    const bool wants_fresh = fresh_[c] != nullptr && kept(c) < least_stock(c);
    heartbeat(from, (wants_fresh ? 1 : kept(c) + 1) * weight(c));
    in_use_[c] = true;
    if (is_sparse_[c] && kept(c) > 0) give_back_returns(c, kept(c), from);
    // A few returns alone would bring the next slow step too soon; they wait until there are more, or nothing else.
    if (kept(c) < least_stock(c)) {
      if (fresh_[c] == nullptr) draw(c, from);
      if (fresh_[c] != nullptr) return pop_fresh(c);
    }
    if (of_[c].stock == nullptr) {
      of_[c].stock = of_[c].returns;
      std::atomic_signal_fence(std::memory_order_release);
      of_[c].returns = nullptr;
      of_[c].room = of_[c].limit;
    }
    return pop_class(c);
  }

  /// Frees a block of ours of class c that neither push nor push_away kept.
  [[gnu::noinline]] void push_slow(block* b, page_tag tag, centre& to) noexcept {
    const unsigned c = class_of(tag);
    misuse<R, OS>::note_freed(b, *map_);
    wipe(b, c);
    uncount_unkept(c);
    if ((tag ^ owner_) > class_mask) {
      heartbeat(to, classes::is_whole(c) ? weight(c) : classes::of(c).batch);
      b->next = std::exchange(of_[c].away, nullptr);
      give_back(c, b, away_count(c) + 1, to);
      away_room_[c] = all_away_room(c);
      return;
    }
    heartbeat(to, of_[c].room == 0 && !classes::is_whole(c) ? kept(c) : weight(c));
    in_use_[c] = true;
    if (of_[c].room == 0 && classes::is_long(c)) {
      if (regret_[c] < UINT8_MAX) ++regret_[c];
      give_back(c, b, 1, to);
      return;
    }
    if (of_[c].room == 0 && !raise_limit(c, to)) give_back_returns(c, kept(c) / 2 + 1, to);
    b->next = of_[c].returns;
    of_[c].returns = b;
    --of_[c].room;
  }

  /// Gives everything back to the centre. The cache can go on being used.
  [[gnu::noinline]] void flush(centre& to) noexcept {
    for (unsigned c = 1; c < class_count; ++c) flush_class(c, to);
  }

  /// Leaves everything in the cache for the next thread, if little can be in it and few are left so. Two windows later, or when
  /// memory is short, it is flushed by whoever comes by. The caller holds the lock of the caches.
  [[nodiscard]] bool try_park(centre& in) noexcept {
    constexpr auto& plan = R.thread_cache;
    if (limit_total_[false] + limit_total_[true] > std::int64_t{plan.max_parked_bytes}) return false;
    if (in.parked >= plan.max_parked) return false;
    in.parked.add(1);
    parked_at_ = OS::milliseconds() + 1;
    return true;
  }

  void unpark(centre& in) noexcept {
    if (!is_parked()) return;
    parked_at_ = 0;
    in.parked.subtract(1);
  }

  [[nodiscard]] bool is_parked() const noexcept { return parked_at_ != 0; }

  /// In the child of a fork, for the cache of a thread that is no more: it may have been interrupted in the middle of a fast
  /// path, so the counters may be off by one. The lists are whole at every instruction: a fence keeps the compiler's order.
  void repair_after_fork() noexcept {
    for (unsigned c = 1; c < class_count; ++c) {
      if (of_[c].returns == of_[c].stock) of_[c].returns = nullptr;  // interrupted while the returns became the stock
      of_[c].room = of_[c].limit - static_cast<std::int32_t>(length(of_[c].returns));
      away_room_[c] = static_cast<std::uint8_t>(all_away_room(c) - length(of_[c].away));
      fresh_count_[c] = fresh_[c] == nullptr ? 0 : fresh_blocks_from(fresh_[c]);
    }
  }

  /// Bytes in blocks of this thread's stock, of classes [first, last). Only the thread itself may ask.
  [[nodiscard]] std::uint64_t cached_bytes(unsigned first, unsigned last) const noexcept {
    std::uint64_t bytes = 0;
    for (unsigned c = first; c < last; ++c) {
      const std::uint32_t held = classes::is_whole(c) ? classes::of(c).first_pages * heap_page : classes::of(c).size;
      bytes += std::uint64_t{length(of_[c].stock) + kept(c) + away_count(c) + fresh_count_[c]} * held;
    }
    return bytes;
  }

  [[nodiscard]] static std::uint32_t length(const block* b) noexcept {
    std::uint32_t n = 0;
    for (; b != nullptr; b = b->next) ++n;
    return n;
  }

  /// What is here of class c. From another thread: as of different moments, and to be followed with care (census.hpp).
  [[nodiscard, gnu::no_sanitize_thread]] std::array<const block*, 3> lists_of(unsigned c) const noexcept {
    return {__atomic_load_n(&of_[c].stock, __ATOMIC_RELAXED), __atomic_load_n(&of_[c].returns, __ATOMIC_RELAXED),
            __atomic_load_n(&of_[c].away, __ATOMIC_RELAXED)};
  }

  struct run {
    const std::byte* first;
    std::uint32_t count;
  };

  /// The fresh blocks of class c; the same holds.
  [[nodiscard, gnu::no_sanitize_thread]] run fresh_of(unsigned c) const noexcept {
    return {__atomic_load_n(&fresh_[c], __ATOMIC_RELAXED), __atomic_load_n(&fresh_count_[c], __ATOMIC_RELAXED)};
  }

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] page_tag owner() const noexcept { return owner_; }

  thread_cache* next = nullptr;  ///< the heap links caches here, open ones and idle ones

 private:
  static constexpr std::size_t even_step = size_class_plan::smallest_step;

  /// Where the recipe lists sizes, malloc itself looks into the table: then it has an entry for each size, which saves rounding.
  static constexpr std::size_t table_step = R.classes.exact.empty() ? even_step : 1;
  static constexpr page_tag no_owner = ~class_mask;
  static constexpr std::uint32_t blocks_per_clock = 512;
  static constexpr std::uint32_t blocks_per_sweep = 4;
  static constexpr std::uint32_t looks_per_fading = 16;
  static constexpr std::size_t many = 16;

  static constexpr auto make_scaled_of_small() {
    std::array<std::uint16_t, small_max / table_step + 1> table{};
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<std::uint16_t>(classes::index(i * table_step) * sizeof(lists));
    return table;
  }
  static_assert(classes::largest >= small_max, "recipe.classes.largest: at least 1024");

  /// What the fast path has of a class, and of class 0 nothing.
  struct lists {
    block* stock;
    block* returns;
    std::int32_t room;
    std::int32_t limit;
    block* away;
  };

  static constexpr auto scaled_of_small = make_scaled_of_small();

  /// The compiler is kept from seeing that two calls have the same result: as part of an instruction an address costs none of its own.
  [[nodiscard]] lists& lists_at(std::size_t scaled) noexcept {
    static_assert(sizeof(lists) == std::size_t{1} << class_shift);
    static_assert(sizeof(lists) == 2 * even_step);
    return *reinterpret_cast<lists*>(reinterpret_cast<std::byte*>(std::launder(this)->of_) + scaled);
  }

  [[nodiscard]] std::uint32_t kept(unsigned c) const noexcept {
    return static_cast<std::uint32_t>(of_[c].limit - of_[c].room);
  }

  /// push counts a block before it finds that there is no room. It may be another thread's by the time that the slow step looks at it:
  /// one that has begun to draw from the block's span.
  void uncount_unkept(unsigned c) noexcept {
    if (of_[c].room < 0) of_[c].room = 0;
  }

  static constexpr std::uint8_t all_away_room(unsigned c) noexcept {
    return classes::is_whole(c) ? 0 : static_cast<std::uint8_t>(classes::of(c).batch - 1);
  }

  [[nodiscard]] std::uint32_t away_count(unsigned c) const noexcept { return all_away_room(c) - away_room_[c]; }

  static std::int32_t first_limit(unsigned c) noexcept { return classes::of(c).first_kept; }

  void set_limit(unsigned c, std::int32_t limit) noexcept {
    limit_total_[classes::is_long(c)] += (limit - of_[c].limit) * static_cast<std::int64_t>(classes::of(c).size);
    of_[c].room += limit - of_[c].limit;
    of_[c].limit = limit;
  }

  /// Whether a page holds many blocks of class c: a slow step for each would cost more than the memory and the page faults that it saves.
  static constexpr bool are_many(unsigned c) noexcept { return classes::of(c).size * many <= heap_page; }

  /// Fewer blocks than this in the stock would bring the next slow step too soon: as many as are drawn at once, or half as many.
  [[nodiscard]] std::uint32_t least_stock(unsigned c) const noexcept {
    return 1 + (are_many(c) ? draw_[c] : draw_[c] / 2U);
  }

  /// Long blocks are worth keeping only where they are asked for again: not those that a growing array leaves behind. So their
  /// limit is raised when one is needed that was given back before.
  void draw(unsigned c, centre& from) noexcept {
    if (regret_[c] > 0 && raise_limit(c, from)) --regret_[c];
    if (classes::is_whole(c)) {
      if (span* const s = from.page_heap.allocate_whole(c, owner_)) set_fresh(c, s->block_begin(), 1);
      return;
    }
    const auto& info = classes::of(c);
    const auto wanted = std::max<std::uint16_t>(std::max(draw_[c], std::min(info.first_kept, info.batch)), 1);
    draw_[c] = std::min<std::uint16_t>(static_cast<std::uint16_t>(wanted * 2), info.batch);
    const auto drawn = from.classes[c].draw(c, wanted, owner_, attached_[c], from.page_heap);
    of_[c].stock = drawn.returned;
    if (drawn.fresh == nullptr) return;
    if constexpr (misuse<R, OS>::checks) {
      for (std::uint32_t i = 0; i < drawn.fresh_count; ++i)
        misuse<R, OS>::note_fresh(reinterpret_cast<block*>(drawn.fresh + i * std::size_t{info.size}));
    }
    set_fresh(c, drawn.fresh, static_cast<std::uint16_t>(drawn.fresh_count));
  }

  /// A child of a fork believes the pointer, and finds the count from it (repair_after_fork).
  void set_fresh(unsigned c, std::byte* first, std::uint16_t count) noexcept {
    fresh_count_[c] = count;
    std::atomic_signal_fence(std::memory_order_release);
    fresh_[c] = first;
    std::atomic_signal_fence(std::memory_order_release);
  }

  /// How many fresh blocks there are from this one on.
  [[nodiscard]] std::uint16_t fresh_blocks_from(const std::byte* first) const noexcept {
    const span* const s = map_->span_at(first);
    if (s->state == span_state::large) return 1;
    const std::size_t size = classes::of(s->size_class).size;
    return static_cast<std::uint16_t>(s->carved - (address_of(first) - address_of(s->block_begin())) / size);
  }

  /// The next fresh block. Where a page holds many, some that follow go into the stock, if the block before it is in the same page, which has been touched
  /// then as a rule.
  [[nodiscard]] void* pop_fresh(unsigned c) noexcept {
    const std::size_t size = classes::of(c).size;
    std::byte* const first = fresh_[c];
    const std::size_t in_page = address_of(first) % heap_page;
    const bool is_touched = in_page >= size;
    const std::size_t begin_here = is_touched && are_many(c) ? (heap_page - 1 - in_page) / size + 1 : 1;
    const auto n = static_cast<std::uint16_t>(std::min<std::size_t>({begin_here, many, fresh_count_[c]}));
    const auto left = static_cast<std::uint16_t>(fresh_count_[c] - n);
    std::byte* const end = first + n * size;
    fresh_[c] = left == 0 ? nullptr : end;
    std::atomic_signal_fence(std::memory_order_release);
    fresh_count_[c] = left;
    block* stock = nullptr;
    for (std::byte* p = end - size; p != first; p -= size) stock = new (p) block{stock};
    std::atomic_signal_fence(std::memory_order_release);
    of_[c].stock = stock;
    blocks_ += n - 1U;
    misuse<R, OS>::note_allocated(reinterpret_cast<block*>(first));
    return first;
  }

  /// Takes the newest n blocks off the returns: they are the ones in the processor's cache. The list is taken away as a whole
  /// first, so that a child forked meanwhile by another thread loses blocks rather than have them twice.
  void give_back_returns(unsigned c, std::uint32_t n, centre& to) noexcept {
    block* const first = of_[c].returns;
    of_[c].returns = nullptr;
    of_[c].returns = give_back(c, first, n, to);
    of_[c].room += static_cast<std::int32_t>(n);
  }

  /// Takes back `n` blocks, the first of a list; returns what follows them.
  [[gnu::noinline]] block* give_back(unsigned c, block* first, std::uint32_t n, centre& to) noexcept {
    if (!classes::is_whole(c)) return to.classes[c].give_back(c, first, n, to.page_heap);
    for (; n > 0; --n) {
      block* const following = first->next;
      to.page_heap.release(map_->span_at(first));
      first = following;
    }
    return first;
  }

  /// By how many bytes this thread's limits of one kind may exceed their first values.
  static std::int64_t share(bool is_long, const heap_figures& of) noexcept {
    constexpr auto& plan = R.thread_cache;
    if (!is_long) return plan.share_bytes;
    const std::uint64_t in_use = of.spans + of.large;
    const std::uint64_t threads = std::max<std::uint64_t>(of.threads, 1);
    const auto part = static_cast<std::int64_t>(in_use / plan.long_divisor / threads);
    return std::clamp<std::int64_t>(part, plan.share_bytes, plan.max_long_bytes);
  }

  /// Lets the class keep more; once the share is reached, at the cost of classes that have not used half of theirs.
  bool raise_limit(unsigned c, const centre& to) noexcept {
    const auto& info = classes::of(c);
    const bool kind = classes::is_long(c);
    if (!may_raise_[kind] || of_[c].limit >= info.max_kept) return false;
    const std::int32_t raised = std::clamp<std::int32_t>(of_[c].limit * 2, 1, info.max_kept);
    const std::int64_t cost = std::int64_t{raised - of_[c].limit} * info.size;
    const std::int64_t may_be = share(kind, to.page_heap.figures()) - cost;
    for (unsigned tried = 0; limit_total_[kind] > may_be && tried < 4; ++tried) lower_limit(next_victim(kind));
    if (limit_total_[kind] > may_be) {
      may_raise_[kind] = false;
      return false;
    }
    set_limit(c, raised);
    return true;
  }

  unsigned next_victim(bool is_long) noexcept {
    const unsigned first = is_long ? classes::first_long : 1;
    const unsigned end = is_long ? class_count : classes::first_long;
    unsigned& c = victim_[is_long];
    return c = c < first || c + 1 >= end ? first : c + 1;
  }

  void lower_limit(unsigned c) noexcept {
    const std::int32_t lowered = std::max(of_[c].limit / 2, first_limit(c));
    if (static_cast<std::int32_t>(kept(c)) <= lowered) set_limit(c, lowered);
  }

  /// Frees alone may bring a class here without a slow step.
  [[nodiscard]] bool is_empty(unsigned c) const noexcept {
    return !in_use_[c] && !idle_[c] && kept(c) == 0 && away_count(c) == 0;
  }

  /// Gives back all that is here of a class.
  [[gnu::noinline]] void drain(unsigned c, centre& to) noexcept {
    if (const std::uint32_t n = away_count(c); n > 0) {
      give_back(c, std::exchange(of_[c].away, nullptr), n, to);
      away_room_[c] = all_away_room(c);
    }
    if (const std::uint32_t n = kept(c); n > 0) give_back_returns(c, n, to);
    if (block* const first = of_[c].stock; first != nullptr) {
      of_[c].stock = nullptr;
      give_back(c, first, length(first), to);
    }
    if (std::byte* const first = fresh_[c]; first != nullptr) {
      fresh_[c] = nullptr;
      to.classes[c].undraw(first, std::exchange(fresh_count_[c], std::uint16_t{0}), to.page_heap);
    }
    if (span* const s = attached_[c]; s != nullptr) {
      attached_[c] = nullptr;
      to.classes[c].detach(s, to.page_heap);
    }
    in_use_[c] = idle_[c] = false;
  }

  /// The same, and forgets how much the thread has needed of it.
  void flush_class(unsigned c, centre& to) noexcept {
    if (!is_empty(c)) drain(c, to);
    set_limit(c, first_limit(c));
    draw_[c] = 0;
    regret_[c] = 0;
    is_sparse_[c] = false;
  }

  /// Sees to the next class that has something here: one that no slow step came by for a window is flushed, one that is thinly spread is
  /// drained. One at a time: a pause is as long as it takes to give back what the limit of one class allows.
  void sweep_on(centre& to) noexcept {
    skip_empty(to);
    if (swept_ == class_count) return;
    const unsigned c = swept_++;
    if (in_use_[c]) {
      idle_[c] = std::exchange(in_use_[c], false);
      is_sparse_[c] = !classes::is_whole(c) && to.classes[c].is_sparse(c);
      if (is_sparse_[c]) drain(c, to);
    } else {
      flush_class(c, to);
    }
    skip_empty(to);
  }

  void skip_empty(centre& to) noexcept {
    while (swept_ < class_count && is_empty(swept_)) flush_class(swept_++, to);
  }

  /// What a block counts towards the next look at the clock.
  static constexpr std::uint32_t weight(unsigned c) noexcept {
    return classes::is_whole(c) ? classes::of(c).first_pages : 1;
  }

  /// After every few hundred blocks looks at the clock: lets the page heap give memory back, and once per window begins a sweep.
  void heartbeat(centre& to, std::uint32_t blocks) noexcept {
    blocks_ += blocks;
    if (blocks_ >= blocks_per_clock) [[unlikely]]
      look_at_clock(to);
  }

  [[gnu::noinline, gnu::cold]] void look_at_clock(centre& to) noexcept {
    to.page_heap.tick();
    if (swept_ == class_count) look_for_window(to);
    if (swept_ < class_count) sweep_on(to);
    blocks_ = swept_ < class_count ? blocks_per_clock - blocks_per_sweep : 0;
  }

  void look_for_window(centre& to) noexcept {
    may_raise_[false] = may_raise_[true] = true;
    if (++looks_ % looks_per_fading == 0) {
      for (auto& regret : regret_) regret /= 2;
    }
    const std::uint64_t now = OS::milliseconds();
    if (now < next_sweep_) return;
    const std::uint64_t window = to.page_heap.window_ms();
    next_sweep_ = now + window;
    swept_ = 1;
    if (to.parked > 0 && now >= window && to.caches_lock.try_acquire()) {
      to.flush_parked(now - window);
      to.caches_lock.release();
    }
  }

  // What the fast path touches comes first.
  page_tag owner_ = no_owner;
  const page_map<OS>* map_;
  lists of_[class_count]{};

  std::uint8_t away_room_[class_of(large_tag) + 1]{};  ///< 0 for what is no class, and of the empty cache
  span* attached_[class_count]{};
  std::byte* fresh_[class_count]{};
  std::uint16_t fresh_count_[class_count]{};
  std::uint16_t draw_[class_count]{};   ///< fresh blocks to draw next time; doubles up to a batch
  std::uint8_t regret_[class_count]{};  ///< long blocks given back for want of room, and not asked for again; fades
  bool is_sparse_[class_count]{};       ///< thinly spread over its spans when last looked at: nothing is kept
  bool in_use_[class_count]{};          ///< a slow step came by since the last sweep
  bool idle_[class_count]{};            ///< none has since, but before

  // Of short blocks, and of long ones.
  std::int64_t limit_total_[2]{};  ///< bytes by which limits are above their first values
  unsigned victim_[2]{};           ///< whose limit was lowered last
  bool may_raise_[2]{true, true};  ///< false from when no class had room to spare until the next look at the clock

  std::uint32_t blocks_ = 0;  ///< since the clock was last looked at
  std::uint32_t looks_ = 0;
  std::uint64_t next_sweep_ = 0;  ///< milliseconds
  unsigned swept_ = class_count;  ///< the sweep is at this class; class_count: none is going on
  std::uint64_t parked_at_ = 0;   ///< milliseconds, and one more; 0: it is not
  std::uint32_t id_ = 0;
};

}  // namespace heapwright
