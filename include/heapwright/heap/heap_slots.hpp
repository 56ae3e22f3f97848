// How a thread finds its cache of each heap that a program makes for itself (basic_heap.hpp), and
// what happens to its caches when the thread ends, when a heap ends, and at fork.
//
// A heap is registered: it has a slot, a small number that no other living heap has, and an
// identity, a number that no other heap ever has. Each thread has an entry for every slot: the
// identity of a heap, and the thread's cache of it. An entry is this heap's only if the identities
// agree, so a heap that ends leaves the entries of all threads as they are.
//
// States of an entry   empty (identity 0), of a living heap, of a heap that has ended
// States of a thread   unseen       all its entries are empty
//                      registered   its end closes the caches in its entries
//                      ended        all its entries are empty, and stay so
// Lock order: the lock of the slots comes before all locks of a heap.
#pragma once

#include <array>
#include <cstdint>

#include <heapwright/sync/lock.hpp>
#include <heapwright/sync/thread_record.hpp>

namespace heapwright {

template <platform OS>
class heap_slots {
 public:
  /// Heaps that are registered at the same time. Threads have no caches of their own of other
  /// heaps.
  static constexpr unsigned most = 64;
  static constexpr unsigned no_slot = most;  ///< the slot of a heap that has none; its entries stay empty

  struct entry {
    std::uint64_t heap;
    void* cache;
  };

  /// What can be done to a heap whose type is not known here.
  struct operations {
    void (*close_cache)(void* heap, void* cache) noexcept;
    void (*before_fork)(void* heap) noexcept;
    void (*after_fork_in_parent)(void* heap) noexcept;
    void (*after_fork_in_child)(void* heap, void* cache) noexcept;
  };

  struct registration {
    unsigned slot = no_slot;
    std::uint64_t heap = ~std::uint64_t{0};  ///< its identity
  };

  [[nodiscard, gnu::cold]] static registration add(void* heap, const operations& how) noexcept {
    holding guard(lock_);
    if (last_heap_ == 0) OS::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    const std::uint64_t identity = ++last_heap_;
    for (unsigned i = 0; i < most; ++i) {
      if (heaps_[i].identity != 0) continue;
      heaps_[i] = {identity, heap, &how};
      return {i, identity};
    }
    return {no_slot, identity};
  }

  /// No thread's end reaches the heap's caches any more.
  [[gnu::cold]] static void remove(registration of) noexcept {
    if (of.slot == no_slot) return;
    holding guard(lock_);
    heaps_[of.slot] = {};
  }

  /// The calling thread's cache of this heap, or null.
  [[nodiscard]] static void* cache_of(registration of) noexcept {
    const entry& e = record::mine().entries[of.slot];
    return e.heap == of.heap ? e.cache : nullptr;
  }

  /// True when the calling thread may open a cache of a heap with this registration.
  [[nodiscard]] static bool may_open(registration of) noexcept {
    return of.slot != no_slot && !record::mine().has_ended;
  }

  [[gnu::cold]] static void set_cache(registration of, void* cache) noexcept {
    record::mine().entries[of.slot] = {of.heap, cache};
    record::arm();
  }

 private:
  struct registered_heap {
    std::uint64_t identity = 0;
    void* heap = nullptr;
    const operations* how = nullptr;
  };

  struct thread_entries {
    std::array<entry, most + 1> entries{};
    bool has_ended = false;

    /// Closes the thread's caches.
    void at_end() noexcept {
      has_ended = true;
      holding guard(lock_);
      for (unsigned i = 0; i < most; ++i) {
        const entry left = entries[i];
        entries[i] = {};
        if (left.heap != 0 && left.heap == heaps_[i].identity) heaps_[i].how->close_cache(heaps_[i].heap, left.cache);
      }
    }
    [[nodiscard]] static constexpr thread_entries ended() noexcept { return {.entries = {}, .has_ended = true}; }
  };
  using record = thread_record<thread_entries>;

  static void before_fork() noexcept {
    lock_.acquire();
    for (const registered_heap& h : heaps_) {
      if (h.identity != 0) h.how->before_fork(h.heap);
    }
  }

  static void after_fork_in_parent() noexcept {
    for (const registered_heap& h : heaps_) {
      if (h.identity != 0) h.how->after_fork_in_parent(h.heap);
    }
    lock_.release();
  }

  static void after_fork_in_child() noexcept {
    for (unsigned i = 0; i < most; ++i) {
      const registered_heap& h = heaps_[i];
      if (h.identity != 0) h.how->after_fork_in_child(h.heap, cache_of({i, h.identity}));
    }
    lock_.reset_after_fork();
  }

  static inline constinit lock<OS> lock_;
  static inline constinit std::array<registered_heap, most> heaps_{};
  static inline constinit std::uint64_t last_heap_ = 0;
};

}  // namespace heapwright
