// Which thread caches a heap has, and which of them no thread uses.
//
// States of a cache   open     a thread uses it
//                     parked   its thread has ended and left its few blocks in it, for the next
//                              thread
//                     idle     its thread has ended; it is empty
//                     borrowed threads without a cache of their own borrow it (borrowed_cache.hpp);
//                              open for ever
//
// Caches are never freed, so that a reader may follow a link that is out of date. One lock guards
// all of it. Lock order: borrowed cache, registry, central free list, page heap.
#pragma once

#include <atomic>
#include <cstdint>

#include <heapwright/heap/class_table.hpp>
#include <heapwright/heap/figures.hpp>
#include <heapwright/heap/page_map.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

/// What the registry knows of a thread cache: its base.
struct registered_cache {
  registered_cache* next = nullptr;
  std::uint64_t parked_at = 0;       ///< milliseconds, and one more; 0: it is not parked
  std::uint32_t id = 0;              ///< from 1 on; 0: no cache
  std::atomic<bool> is_open{false};  ///< a thread uses it: others may send it their remote frees

  [[nodiscard]] bool is_parked() const noexcept { return parked_at != 0; }
};

/// All zero is empty.
template <const recipe& R, platform OS>
class cache_registry {
  friend struct heap_describer;

 public:
  using lock_type = heap_lock<R, OS>;

  /// A cache for a thread: one that no thread uses, or else what `make(id)` returns; null when that
  /// is null, ids have run out, or `allocate(bytes)` returns no zeroed memory for the registry's
  /// own records.
  template <class Make, class Allocate>
  [[nodiscard]] registered_cache* open(heap_figures& figures, Make make, Allocate allocate) noexcept {
    holding guard(lock_);
    registered_cache* c = unused_;
    if (c != nullptr) {
      unused_ = c->next;
      unpark(c);
    } else {
      const std::uint32_t id = last_id_ + 1;
      if (id == owners_end || !has_room_for(id, allocate)) return nullptr;
      c = make(id);
      if (c == nullptr) return nullptr;
      last_id_ = id;
      place_of(id).store(c, std::memory_order_release);
    }
    c->is_open.store(true, std::memory_order_relaxed);
    c->next = open_;
    open_ = c;
    figures.threads.add(1);
    figures.threads_total.add(1);
    return c;
  }

  /// The one cache that threads without their own borrow: what `make(id)` returns, which is never
  /// null. Counts as no thread.
  template <class Make>
  void open_borrowed(Make make) noexcept {
    holding guard(lock_);
    borrowed_ = make(++last_id_);
  }

  /// The cache with this id, or null. Without a lock. Not the one that is borrowed.
  [[nodiscard]] registered_cache* find(std::uint32_t id) const noexcept {
    if (id == 1) return first_.load(std::memory_order_acquire);
    const chunk* const c = id >= owners_end ? nullptr : by_id_[id / chunk_ids].load(std::memory_order_acquire);
    return c == nullptr ? nullptr : c->caches[id % chunk_ids].load(std::memory_order_acquire);
  }

  /// Leaves a cache with all its blocks to the next thread. False: too many are parked; it is as it
  /// was.
  [[nodiscard]] bool try_park(registered_cache* c, heap_figures& figures) noexcept {
    holding guard(lock_);
    if (parked_ >= R.thread_cache.max_parked) return false;
    parked_.add(1);
    c->parked_at = OS::milliseconds() + 1;
    close_held(c, figures);
    return true;
  }

  /// An empty cache is no thread's any more.
  void close(registered_cache* c, heap_figures& figures) noexcept {
    holding guard(lock_);
    close_held(c, figures);
  }

  /// Calls `flush(cache)` for the caches parked at `until` (milliseconds) or before, and parks them
  /// no longer.
  template <class Flush>
  void flush_parked(std::uint64_t until, Flush flush) noexcept {
    holding guard(lock_);
    flush_parked_held(until, flush);
  }

  /// The same, unless that means to wait.
  template <class Flush>
  void try_flush_parked(std::uint64_t until, Flush flush) noexcept {
    if (parked_ == 0 || !lock_.try_acquire()) return;
    flush_parked_held(until, flush);
    lock_.release();
  }

  /// Calls f(cache) for each, open or not. The caller holds the lock.
  template <class F>
  void for_each_held(F f) const {
    for (registered_cache* c = open_; c != nullptr; c = c->next) f(*c);
    for (registered_cache* c = unused_; c != nullptr; c = c->next) f(*c);
    if (borrowed_ != nullptr) f(*borrowed_);
  }

  /// In the child of a fork: closes all open caches but `mine`, after `abandon(cache)`. Their
  /// threads are gone.
  template <class Abandon>
  void after_fork_in_child(registered_cache* mine, heap_figures& figures, Abandon abandon) noexcept {
    lock_.reset_after_fork();
    for (registered_cache* c = open_; c != nullptr;) {
      registered_cache* const following = c->next;
      if (c != mine) {
        abandon(*c);
        close_held(c, figures);
      }
      c = following;
    }
  }

  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::uint32_t chunk_ids = 512;

  struct chunk {
    std::atomic<registered_cache*> caches[chunk_ids];
  };

  /// A program with one thread pays for no chunk.
  std::atomic<registered_cache*>& place_of(std::uint32_t id) noexcept {
    return id == 1 ? first_ : by_id_[id / chunk_ids].load(std::memory_order_relaxed)->caches[id % chunk_ids];
  }

  template <class Allocate>
  [[nodiscard]] bool has_room_for(std::uint32_t id, Allocate allocate) noexcept {
    if (id == 1) return true;
    auto& place = by_id_[id / chunk_ids];
    if (place.load(std::memory_order_relaxed) != nullptr) return true;
    auto* const fresh = static_cast<chunk*>(allocate(sizeof(chunk)));
    if (fresh == nullptr) return false;
    place.store(fresh, std::memory_order_release);
    return true;
  }

  template <class Flush>
  void flush_parked_held(std::uint64_t until, Flush flush) noexcept {
    for (registered_cache* c = unused_; c != nullptr; c = c->next) {
      if (c->is_parked() && c->parked_at <= until) {
        unpark(c);
        flush(*c);
      }
    }
  }

  void unpark(registered_cache* c) noexcept {
    if (!c->is_parked()) return;
    c->parked_at = 0;
    parked_.subtract(1);
  }

  void close_held(registered_cache* c, heap_figures& figures) noexcept {
    registered_cache** link = &open_;
    while (*link != c) link = &(*link)->next;
    *link = c->next;
    c->next = unused_;
    unused_ = c;
    figures.threads.subtract(1);
  }

  lock_type lock_;
  registered_cache* open_ = nullptr;
  registered_cache* unused_ = nullptr;  ///< parked and idle ones, the latest first
  registered_cache* borrowed_ = nullptr;
  std::uint32_t last_id_ = 0;
  figure parked_;                                  ///< how many are; read without the lock
  std::atomic<registered_cache*> first_{nullptr};  ///< the cache with id 1
  std::atomic<chunk*> by_id_[owners_end / chunk_ids + 1]{};
};

}  // namespace heapwright
