// Middle of the heap: what all threads share. Owns the central free lists, one per class that is
// cut from spans; the mixed spans; the registry of thread caches; and the page heap.
//
// Knows nothing of what a thread cache holds: the caches (thread_cache.hpp) refill from here and
// flush to here.
//
// Locks are taken downwards: registry, one central free list or the mixed spans, page heap.
// lock_all takes all of them, for fork and for a census.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heapwright/heap/block_links.hpp>
#include <heapwright/heap/cache_registry.hpp>
#include <heapwright/heap/central_free_list.hpp>
#include <heapwright/heap/empty_blocks.hpp>
#include <heapwright/heap/mixed_spans.hpp>
#include <heapwright/heap/seal_keys.hpp>

namespace heapwright {

/// All zero is a heap that was never used, so that the process's malloc works before main.
template <const recipe& R, platform OS>
class shared_heap {
  friend struct heap_describer;

  using classes = class_table<R>;

 public:
  using central_type = central_free_list<R, OS>;

  constexpr shared_heap() noexcept = default;
  shared_heap(const shared_heap&) = delete;
  shared_heap& operator=(const shared_heap&) = delete;

  [[nodiscard]] page_heap<R, OS>& pages() noexcept { return pages_; }
  [[nodiscard]] const page_heap<R, OS>& pages() const noexcept { return pages_; }
  [[nodiscard]] cache_registry<R, OS>& caches() noexcept { return caches_; }
  [[nodiscard]] const cache_registry<R, OS>& caches() const noexcept { return caches_; }
  [[nodiscard]] constexpr const page_map_of<R, OS>& map() const noexcept { return pages_.map(); }
  [[nodiscard]] heap_figures& figures() noexcept { return pages_.figures(); }
  [[nodiscard]] const heap_figures& figures() const noexcept { return pages_.figures(); }

  /// Of class c, which is cut from spans.
  [[nodiscard]] central_type& central(unsigned c) noexcept { return central_[c]; }
  [[nodiscard]] const central_type& central(unsigned c) const noexcept { return central_[c]; }

  /// Of the seals of blocks.
  [[nodiscard]] auto& keys() noexcept { return keys_; }

  /// Of a recipe whose blocks have seals.
  [[nodiscard]] auto& empty() noexcept { return empty_; }

  /// Up to `wanted` blocks of class c, which has mixed spans. Null when the system has no memory.
  [[nodiscard]] block* refill_mixed(unsigned c, std::uint32_t wanted, mixed_strip& strip) noexcept {
    return mixed_.refill(c, wanted, strip, pages_, figures_of_mixed());
  }

  /// What mixed_spans says of it.
  [[nodiscard]] bool has_chunk_for(unsigned c) const noexcept { return mixed_.has_chunk_for(c); }

  /// Takes back what is left of a thread's strip.
  void take_back(mixed_strip& strip) noexcept {
    if constexpr (classes::has_mixed) mixed_.take_back(strip, pages_, figures_of_mixed());
  }

  /// Calls f(block) for what waits in mixed spans. The caller holds every lock.
  template <class F>
  void for_each_waiting_held(F f) const noexcept {
    if constexpr (classes::has_mixed) mixed_.for_each_waiting_held(f);
  }

  /// Blocks of class c that are outside: with the program, or in a thread cache.
  [[nodiscard]] std::uint64_t outside(unsigned c) noexcept {
    return classes::is_mixed(c) ? mixed_.outside(central_[c].figures()) : central_[c].outside();
  }

  /// Whether spans of class c are its own, and have much more free than used.
  [[nodiscard]] bool is_sparse(unsigned c) noexcept {
    return !classes::is_page_run(c) && !classes::is_mixed(c) && central_[c].is_sparse(c);
  }

  /// Takes back `n` blocks of class c, the first of a list. Returns the rest of the list.
  [[gnu::noinline]] block* flush(unsigned c, block* first, std::uint32_t n) noexcept {
    if (classes::is_mixed(c)) return mixed_.flush(c, first, n, pages_, figures_of_mixed());
    if (!classes::is_page_run(c)) return central_[c].flush(c, first, n, pages_);
    for (; n > 0; --n) {
      block* const following = block_links<R>::next(first);
      span* const s = map().span_at(first);
      misuse<R, OS>::check_run(first, *s);
      pages_.release(s);
      first = following;
    }
    return first;
  }

  /// Gives all memory back to the system that is free and not in a thread cache. Returns the bytes.
  [[gnu::cold]] std::size_t trim() noexcept {
    for (unsigned c = 1; c < classes::cut_end; ++c) central_[c].trim(pages_);
    if constexpr (classes::has_mixed) mixed_.trim(pages_, figures_of_mixed());
    return pages_.trim();
  }

  /// Where the tail of the mixed spans begins, or null. The caller holds every lock.
  [[nodiscard]] const std::byte* tail_of_mixed_held() const noexcept {
    if constexpr (classes::has_mixed) return mixed_.tail_held();
    return nullptr;
  }

  void lock_all() noexcept {
    caches_.fork_lock().acquire();
    for (auto& c : central_) c.fork_lock().acquire();
    mixed_.fork_lock().acquire();
    empty_.fork_lock().acquire();
    pages_.fork_lock().acquire();
  }

  void unlock_all() noexcept {
    pages_.fork_lock().release();
    empty_.fork_lock().release();
    mixed_.fork_lock().release();
    for (auto& c : central_) c.fork_lock().release();
    caches_.fork_lock().release();
  }

  /// As lock_all, unless a lock is held for longer than until `deadline` (milliseconds): false, and
  /// nothing is locked.
  [[nodiscard]] bool try_lock_all(std::uint64_t deadline) noexcept {
    const auto try_lock = [deadline](auto& lock) {
      while (!lock.try_acquire()) {
        if (OS::milliseconds() > deadline) return false;
        OS::relax();
      }
      return true;
    };
    if (!try_lock(caches_.fork_lock())) return false;
    std::size_t locked = 0;
    while (locked < classes::cut_end && try_lock(central_[locked].fork_lock())) ++locked;
    if (locked == classes::cut_end && try_lock(mixed_.fork_lock())) {
      if (try_lock(empty_.fork_lock())) {
        if (try_lock(pages_.fork_lock())) return true;
        empty_.fork_lock().release();
      }
      mixed_.fork_lock().release();
    }
    while (locked > 0) central_[--locked].fork_lock().release();
    caches_.fork_lock().release();
    return false;
  }

  /// In the child of a fork, whose parent held all locks. See cache_registry for `mine` and
  /// `abandon`.
  template <class Abandon>
  [[gnu::cold]] void after_fork_in_child(registered_cache* mine, Abandon abandon) noexcept {
    pages_.after_fork_in_child();
    mixed_.fork_lock().reset_after_fork();
    empty_.fork_lock().reset_after_fork();
    for (auto& c : central_) c.fork_lock().reset_after_fork();
    caches_.after_fork_in_child(mine, figures(), abandon);
  }

 private:
  /// Of a part that the recipe does not have.
  struct nothing_to_lock {
    void acquire() noexcept {}
    void release() noexcept {}
    [[nodiscard]] bool try_acquire() noexcept { return true; }
    void reset_after_fork() noexcept {}
  };

  struct no_mixed_spans {
    [[no_unique_address]] nothing_to_lock lock;

    template <class... A>
    block* refill(A&&...) noexcept {
      return nullptr;
    }
    template <class... A>
    block* flush(A&&...) noexcept {
      return nullptr;
    }
    std::uint64_t outside(const class_figures&) noexcept { return 0; }
    bool has_chunk_for(unsigned) const noexcept { return false; }
    nothing_to_lock& fork_lock() noexcept { return lock; }
  };
  using mixed_type = std::conditional_t<classes::has_mixed, mixed_spans<R, OS>, no_mixed_spans>;

  /// Those of a class, which are guarded by the lock of the mixed spans.
  [[nodiscard]] auto figures_of_mixed() noexcept {
    return [of = central_](unsigned c) -> class_figures& { return of[c].figures_of_mixed(); };
  }

  central_type central_[classes::cut_end];
  [[no_unique_address]] mixed_type mixed_;
  struct no_keys {
    void begin() noexcept {}
    void after_fork_in_child() noexcept {}
  };
  [[no_unique_address]] std::conditional_t<R.hardening.sealed, seal_keys<OS>, no_keys> keys_{};
  struct no_empty_blocks {
    [[no_unique_address]] nothing_to_lock lock;
    nothing_to_lock& fork_lock() noexcept { return lock; }
  };
  [[no_unique_address]] std::conditional_t<R.hardening.sealed, empty_blocks<R, OS>, no_empty_blocks> empty_{};
  cache_registry<R, OS> caches_;
  page_heap<R, OS> pages_;
};

}  // namespace heapwright
