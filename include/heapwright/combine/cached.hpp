// A cache of blocks per thread in front of one allocator for all: the scalable pool, the scalable
// slab. Most calls touch only the calling thread's cache, without a lock or an atomic write; every
// so often a batch of blocks moves, under the lock.
//
// States of a block: live; in one thread's cache, linked through its first word; or with the part.
// Invariant: a cache holds at most 2 x batch blocks, of whatever thread. So a thread that only
// frees gives back as much as comes in, and what stays behind in caches is bounded by the number of
// threads.
//
// A cache belongs to a number that one running thread has (sync/thread_index.hpp). When a thread
// ends, the next one with its number goes on with its cache. Threads beyond the table's size go to
// the part directly; so do all in checked builds, where the part names misuse.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/core/layout.hpp>
#include <heapwright/core/poison.hpp>
#include <heapwright/sync/lock.hpp>
#include <heapwright/sync/thread_index.hpp>

namespace heapwright {

/// How much threads keep; a template argument of cached.
struct cached_plan {
  std::size_t batch = 32;  ///< blocks moved at once between a cache and the part
  unsigned threads = 64;   ///< caches; each takes a cache line
};

/// A, made for blocks of one layout, for any number of threads. Lock has acquire() and release().
/// Owns A. stats() counts blocks in the threads' caches as in use.
template <class A, class Lock, cached_plan Plan = cached_plan{}>
class cached : public forwards<cached<A, Lock, Plan>, true, A> {
  using base = forwards<cached, true, A>;
  friend base;

  static_assert(allocator<A>,
                "cached: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");
  static_assert(Plan.batch >= 1 && Plan.threads >= 1 && Plan.threads <= thread_index::most,
                "cached: at least one block moves at a time, and there are 1 to 1024 caches");

 public:
  /// Arguments are those of A; the first is the layout of the blocks.
  template <class... Arguments>
  explicit cached(layout block, Arguments&&... arguments)
      : block_(widened(block)), part_(layout_for<Arguments...>(block_), std::forward<Arguments>(arguments)...) {}

  cached(const cached&) = delete;
  cached& operator=(const cached&) = delete;

  /// Gives all caches back to the part. No thread may be using it any more.
  ~cached() {
    for (cache& s : caches_) flush(s, s.count);
  }

  /// A block. Null when the part has no more; blocks in other threads' caches do not help. O(1),
  /// but for a new batch, for which the lock is taken.
  [[nodiscard]] void* allocate() noexcept {
    const unsigned t = thread_index::of_this_thread();
    if (checks_callers || t >= Plan.threads) [[unlikely]]
      return allocate_uncached();
    cache& s = caches_[t];
    if (s.first == nullptr) [[unlikely]]
      return allocate_slow(s);
    return pop(s);
  }

  /// From any thread, whichever allocated the block. Null does nothing. O(1), but for a batch that
  /// goes back under the lock.
  void deallocate(void* p) noexcept {
    if (p == nullptr) [[unlikely]]
      return;
    const unsigned t = thread_index::of_this_thread();
    if (checks_callers || t >= Plan.threads) [[unlikely]]
      return deallocate_uncached(p, block_);
    cache& s = caches_[t];
    push(s, p);
    if (s.count > 2 * Plan.batch) [[unlikely]]
      flush(s, Plan.batch);
  }

  /// Null for a layout that does not fit the blocks.
  [[nodiscard]] void* allocate(layout l) noexcept { return fits(l) ? allocate() : nullptr; }

  /// As deallocate(p); checked builds look at the layout.
  void deallocate(void* p, layout l) noexcept {
    if constexpr (checks_callers) {
      if (p != nullptr) deallocate_uncached(p, l);
    } else {
      deallocate(p);
    }
  }

  /// Whether the blocks are large enough, and aligned enough, for this layout.
  [[nodiscard]] bool fits(layout l) const noexcept { return l.size <= block_.size && l.alignment <= block_.alignment; }

  /// Frees all blocks. No other thread may be using it.
  void reset() noexcept
    requires can_reset<A>
  {
    for (cache& s : caches_) s = {};
    holding guard(lock_);
    part_.reset();
  }

  /// Gives the calling thread's cache back to the part, and trims that; returns the bytes that it
  /// gave back.
  std::size_t trim() noexcept
    requires can_trim<A>
  {
    if (const unsigned t = thread_index::of_this_thread(); t < Plan.threads) flush(caches_[t], caches_[t].count);
    holding guard(lock_);
    return part_.trim();
  }

 private:
  template <class Self, class F>
  static void each_part(Self& self, F f) noexcept {
    holding guard(self.lock_);
    f(self.part_);
  }

  template <class Self, class F>
  static auto with_owner(Self& self, const void*, F f) noexcept {
    holding guard(self.lock_);
    return f(self.part_);
  }

  struct link {
    link* next;
  };

  struct alignas(cache_line) cache {
    link* first = nullptr;
    std::size_t count = 0;
  };

  static constexpr layout widened(layout l) noexcept {
    return {std::max(l.size, sizeof(link)), std::max(l.alignment, alignof(link))};
  }

  /// Its type is deduced, so that the compiler comes to the assertion before it constructs the
  /// part.
  template <class... Arguments>
  static constexpr auto layout_for(layout l) noexcept {
    static_assert(std::is_constructible_v<A, layout, Arguments...>,
                  "cached: the part must be made for one layout, as A(layout, arguments...): a pool or a slab, say; "
                  "for many sizes there is bucketed<cached<...>>");
    return l;
  }

  void* pop(cache& s) noexcept {
    link* const b = s.first;
    reveal(b, sizeof(link));
    s.first = b->next;
    --s.count;
    unpoison(b, block_.size);
    return b;
  }

  void push(cache& s, void* p) noexcept {
    auto* const b = static_cast<link*>(p);
    b->next = s.first;
    s.first = b;
    ++s.count;
    poison(b, block_.size);
  }

  /// Fills an empty cache, in the order in which the part hands blocks out.
  [[nodiscard, gnu::noinline]] void* allocate_slow(cache& s) noexcept {
    holding guard(lock_);
    link* last = nullptr;
    for (; s.count < Plan.batch; ++s.count) {
      auto* const b = static_cast<link*>(part_.allocate(block_));
      if (b == nullptr) break;
      b->next = nullptr;
      (last == nullptr ? s.first : last->next) = b;
      if (last != nullptr) poison(last, block_.size);
      last = b;
    }
    if (last == nullptr) return nullptr;
    poison(last, block_.size);
    return pop(s);
  }

  [[gnu::noinline]] void flush(cache& s, std::size_t n) noexcept {
    holding guard(lock_);
    for (; n > 0; --n) part_.deallocate(pop(s), block_);
  }

  [[nodiscard, gnu::noinline]] void* allocate_uncached() noexcept {
    holding guard(lock_);
    return part_.allocate(block_);
  }

  [[gnu::noinline]] void deallocate_uncached(void* p, layout l) noexcept {
    holding guard(lock_);
    part_.deallocate(p, l);
  }

  std::array<cache, Plan.threads> caches_{};
  layout block_;
  mutable Lock lock_;
  A part_;
};

}  // namespace heapwright
