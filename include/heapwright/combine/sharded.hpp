// Several allocators side by side in one range of memory, so that threads do not wait for each
// other's locks.
//
//   range:  [ shard 0 | shard 1 | ... | shard N-1 ]        shards of equal size, each with its lock
//
// A thread allocates from the shard of its number (sync/thread_index.hpp): up to N threads have a
// shard each, more threads share them. A shard without memory is helped out by the others.
//
// States of a block   live       with the program
//                     returned   freed by a thread of another shard; linked through its first word
//                     free       with its home, the shard in whose part of the range it lies
//
// A free by a thread of another shard is a push onto a list, without a lock. Who next takes the
// lock of the home for something else than a free makes the returned blocks free.
// Builds that check or poison free at home at once, under its lock: a double free is seen where it
// happens.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/core/layout.hpp>
#include <heapwright/core/poison.hpp>
#include <heapwright/sync/lock.hpp>
#include <heapwright/sync/thread_index.hpp>

namespace heapwright {

/// N instances of A, a best_fit for example, for any number of threads. Lock has acquire() and
/// release(). Null when no shard has a block that is large enough; the largest block is smaller
/// than an Nth of the range. Has the capabilities of A. Neither copied nor moved.
template <class A, class Lock, unsigned N = 16>
class sharded : public forwards<sharded<A, Lock, N>, true, A> {
  using base = forwards<sharded, true, A>;
  friend base;

  static_assert(
      allocator<A>,
      "sharded: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");
  static_assert(
      can_attach<A> && can_deallocate_unsized<A> && has_usable_size<A>,
      "sharded: the part must have attach(span), deallocate(void*) and usable_size(const void*): a best_fit, say; "
      "for blocks of one layout there is cached");
  static_assert(N >= 1 && N <= thread_index::most, "sharded: there are 1 to 1024 shards");

 public:
  /// Without memory: every request gets null until attach.
  sharded() noexcept = default;

  /// As attach; attached() tells whether the range was large enough.
  explicit sharded(std::span<std::byte> range) noexcept { static_cast<void>(attach(range)); }

  sharded(const sharded&) = delete;
  sharded& operator=(const sharded&) = delete;

  /// Takes the range, of any alignment, which must outlive this. False: it is too small, or there
  /// is one already. No other thread may be using this.
  [[nodiscard]] bool attach(std::span<std::byte> range) noexcept {
    const std::size_t share = align_down(range.size() / N, cache_line);
    if (attached() || share == 0) return false;
    for (unsigned i = 0; i < N; ++i) {
      if (shards_[i].part.attach(range.subspan(i * share, share))) continue;
      for (; i > 0; --i) {
        std::destroy_at(&shards_[i - 1].part);
        std::construct_at(&shards_[i - 1].part);
      }
      return false;
    }
    begin_ = address_of(range.data());
    share_ = share;
    return true;
  }

  /// Whether it has memory.
  [[nodiscard]] bool attached() const noexcept { return share_ != 0; }

  /// As A, and a lock that only threads of this shard take. Now and then it frees what was
  /// returned, O(returned blocks).
  [[nodiscard]] void* allocate(layout l) noexcept {
    const unsigned own = shard_of_this_thread();
    void* const p = allocate_from(shards_[own], l);
    if (p == nullptr) [[unlikely]]
      return allocate_from_others(own, l);
    return p;
  }

  /// From any thread. By a thread of the block's shard: as A. By others: a push, without a lock.
  /// Null does nothing.
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) [[unlikely]]
      return;
    shard& own = shards_[shard_of_this_thread()];
    if (!is_home(own, p)) [[unlikely]]
      return return_home(p, [p, l](A& part) { part.deallocate(p, l); });
    holding guard(own.gate);
    own.part.deallocate(p, l);
  }

  /// The same without a layout.
  void deallocate(void* p) noexcept {
    if (p == nullptr) [[unlikely]]
      return;
    shard& own = shards_[shard_of_this_thread()];
    if (!is_home(own, p)) [[unlikely]]
      return return_home(p, [p](A& part) { part.deallocate(p); });
    holding guard(own.gate);
    own.part.deallocate(p);
  }

  using base::allocate;

  /// Whether p lies in a part of the range that has blocks, live or free. Safe for any value.
  [[nodiscard]] bool owns(const void* p) const noexcept
    requires can_own<A>
  {
    return address_of(p) - begin_ < N * share_ && with_owner(*this, p, [p](const A& part) { return part.owns(p); });
  }

  /// As realloc of C. In place where the block's shard has room behind it; otherwise a new block of
  /// this thread's, and a copy that is made without a lock.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept
    requires can_resize<A>
  {
    const bool in_place = p != nullptr && size != 0 && with_owner(*this, p, [p, size](A& part) {
                            return part.try_resize(p, layout{part.usable_size(p)}, layout{size});
                          });
    return in_place ? p : reallocate_by_copy(*this, p, size);
  }

  /// Frees everything. No other thread may be using this.
  void reset() noexcept
    requires can_reset<A>
  {
    for (shard& s : shards_) {
      s.returned.store(nullptr, std::memory_order_relaxed);
      s.part.reset();
    }
  }

  /// Summed over the shards, one after the other: exact if no other thread allocates or frees
  /// meanwhile.
  [[nodiscard]] auto stats() const noexcept
    requires has_stats<A>
  {
    auto sum = with(shards_[0], [](const A& part) { return part.stats(); });
    for (unsigned i = 1; i < N; ++i) sum += with(shards_[i], [](const A& part) { return part.stats(); });
    return sum;
  }

  /// Of each shard; returns the sum.
  std::size_t defragment() noexcept
    requires requires(A a) { a.defragment(); }
  {
    std::size_t bytes = 0;
    for (shard& s : shards_) bytes += with(s, [](A& part) { return part.defragment(); });
    return bytes;
  }

  /// Calls f(pointer, usable size) for every live block, under the lock of its shard: f must not
  /// allocate or free here.
  template <class Visitor>
  void for_each_live(Visitor&& f) const
    requires requires(const A a, Visitor v) { a.for_each_live(v); }
  {
    for (const shard& s : shards_) with(s, [&](const A& part) { part.for_each_live(f); });
  }

  /// Takes all locks. For fork, so that the child finds none held by a thread that it does not
  /// have: pthread_atfork(lock_all, unlock_all, unlock_all).
  void lock_all() noexcept {
    for (shard& s : shards_) s.gate.acquire();
  }

  /// Releases all locks, after lock_all.
  void unlock_all() noexcept {
    for (shard& s : shards_) s.gate.release();
  }

 private:
  struct link {
    link* next;
  };

  struct alignas(2 * cache_line) shard {
    mutable Lock gate;
    mutable A part;
    alignas(2 * cache_line) mutable std::atomic<link*> returned{nullptr};  // others write it
  };

  static constexpr bool frees_at_once = checks_callers || poisons;

  [[nodiscard]] static unsigned shard_of_this_thread() noexcept { return thread_index::of_this_thread() % N; }

  [[nodiscard]] bool is_home(const shard& s, const void* p) const noexcept {
    const auto index = static_cast<std::size_t>(&s - shards_.data());
    return address_of(p) - begin_ - index * share_ < share_;
  }

  /// Any shard for what is not in the range: its part says what it thinks of that.
  [[nodiscard]] const shard& home(const void* p) const noexcept {
    const std::uintptr_t offset = address_of(p) - begin_;
    return shards_[offset < N * share_ ? offset / share_ : 0];
  }

  [[nodiscard]] shard& home(const void* p) noexcept { return const_cast<shard&>(std::as_const(*this).home(p)); }

  [[nodiscard]] static void* allocate_from(shard& s, layout l) noexcept {
    holding guard(s.gate);
    drain_remote_frees(s);
    return s.part.allocate(l);
  }

  [[nodiscard, gnu::noinline]] void* allocate_from_others(unsigned own, layout l) noexcept {
    for (unsigned step = 1; step < N; ++step) {
      void* const p = allocate_from(shards_[(own + step) % N], l);
      if (p != nullptr) return p;
    }
    return nullptr;
  }

  template <class Deallocate>
  [[gnu::noinline]] void return_home(void* p, Deallocate deallocate) noexcept {
    shard& s = home(p);
    if constexpr (frees_at_once) {
      holding guard(s.gate);
      deallocate(s.part);
    } else {
      auto* const b = static_cast<link*>(p);
      b->next = s.returned.load(std::memory_order_relaxed);
      while (!s.returned.compare_exchange_weak(b->next, b, std::memory_order_release, std::memory_order_relaxed)) {
      }
    }
  }

  /// Precondition: the lock is held.
  static void drain_remote_frees(const shard& s) noexcept {
    if (s.returned.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      free_list(s);
  }

  [[gnu::noinline]] static void free_list(const shard& s) noexcept {
    link* b = s.returned.exchange(nullptr, std::memory_order_acquire);
    while (b != nullptr) {
      link* const next = b->next;
      s.part.deallocate(b);
      b = next;
    }
  }

  template <class Shard, class F>
  static auto with(Shard& s, F f) noexcept {
    holding guard(s.gate);
    drain_remote_frees(s);
    return f(s.part);
  }

  template <class Self, class F>
  static void each_part(Self& self, F f) noexcept {
    for (auto& s : self.shards_) with(s, f);
  }

  template <class Self, class F>
  static auto with_owner(Self& self, const void* p, F f) noexcept {
    return with(self.home(p), f);
  }

  std::array<shard, N> shards_{};
  std::uintptr_t begin_ = 0;
  std::size_t share_ = 0;
};

}  // namespace heapwright
