// The thread cache of threads that have none of their own: they borrow it, one at a time, under a
// lock.
//
// Who borrows: a thread that has ended its own cache and still runs destructors; a thread for which
// there is no memory or no slot; each thread, where the recipe says that the heap is central, or
// for one thread (then the lock is empty).
//
// It lies in the heap's own memory, so that it is there when the system has no more. All zero is a
// cache that was never borrowed. Lock order: this lock comes before all others of the heap.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include <heapwright/heap/thread_cache.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class borrowed_cache {
  using cache = thread_cache<R, OS>;
  static constexpr bool is_only_cache = R.concurrency != concurrency_mode::thread_caching;

 public:
  using lock_type = std::conditional_t<R.concurrency == concurrency_mode::single_threaded, no_lock, lock<OS>>;

  /// Waits for the cache, and lends it to the calling thread until give_back. Not twice at a time.
  [[nodiscard]] cache& borrow(shared_heap<R, OS>& heap) noexcept {
    lock_.acquire();
    if (!is_open_) [[unlikely]]
      open(heap);
    return of_memory();
  }

  void give_back() noexcept { lock_.release(); }

  [[nodiscard]] bool is_this(const cache& c) const noexcept {
    return static_cast<const void*>(&c) == static_cast<const void*>(memory_);
  }

  /// Gives its blocks back. The caller does not hold the lock.
  void flush() noexcept {
    holding guard(lock_);
    if (is_open_) of_memory().flush();
  }

  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

 private:
  [[gnu::noinline, gnu::cold]] void open(shared_heap<R, OS>& heap) noexcept {
    heap.caches().open_borrowed([&](std::uint32_t id) { return new (memory_) cache(heap, id); });
    if constexpr (!is_only_cache) of_memory().fix_limits();
    is_open_ = true;
  }

  cache& of_memory() noexcept { return *std::launder(reinterpret_cast<cache*>(memory_)); }

  lock_type lock_;
  bool is_open_ = false;
  alignas(cache) std::byte memory_[sizeof(cache)]{};
};

}  // namespace heapwright
