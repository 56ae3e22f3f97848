// Where a thread finds its cache of each heap of one's own (heap.hpp), and what happens to its caches when it ends, when a heap ends, and at
// fork.
//
// A heap has a place, a small number that no other living heap has, and an identity, a number that no other heap ever has. Each thread has a seat for
// every place: the identity of a heap, and the thread's cache of it. A seat is taken to be this heap's only if the identities agree, so a heap
// that ends leaves its seats as they are.
//
// States of a seat:    empty (identity 0), taken by a living heap, left behind by one that has ended
// States of a thread:  unseen   all its seats are empty
//                      seated   its end will close the caches in its seats
//                      ended    all its seats are empty and stay so: it goes without caches
// Locks: that of the places comes before all those of a heap.
#pragma once

#include <array>
#include <cstdint>

#include <heapwright/sync/lock.hpp>

namespace heapwright {

template <platform OS>
class thread_seats {
 public:
  /// Heaps that have a place at the same time. Others work without caches.
  static constexpr unsigned most = 64;
  static constexpr unsigned nowhere = most;  ///< the place of a heap that has none; its seats stay empty

  struct seat {
    std::uint64_t heap;
    void* cache;
  };

  /// What can be done to a heap whose type is not known here.
  struct operations {
    void (*close_cache)(void* core, void* cache) noexcept;
    void (*before_fork)(void* core) noexcept;
    void (*after_fork_in_parent)(void* core) noexcept;
    void (*after_fork_in_child)(void* core, void* cache) noexcept;
  };

  struct tenancy {
    unsigned place;
    std::uint64_t heap;
  };

  [[nodiscard, gnu::cold]] static tenancy move_in(void* core, const operations& how) noexcept {
    holding guard(lock_);
    if (last_heap_ == 0) OS::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    const std::uint64_t heap = ++last_heap_;
    for (unsigned i = 0; i < most; ++i) {
      if (tenants_[i].heap != 0) continue;
      tenants_[i] = {heap, core, &how};
      return {i, heap};
    }
    return {nowhere, heap};
  }

  /// No thread's end will reach the heap's caches any more.
  [[gnu::cold]] static void move_out(tenancy of) noexcept {
    if (of.place == nowhere) return;
    holding guard(lock_);
    tenants_[of.place] = {};
  }

  [[nodiscard]] static const seat& of_this_thread(unsigned place) noexcept { return seats_[place]; }

  /// Whether this thread may still open a cache of a heap with this place.
  [[nodiscard]] static bool may_sit(unsigned place) noexcept { return place != nowhere && !has_ended_; }

  [[gnu::cold]] static void sit(tenancy at, void* cache) noexcept {
    seats_[at.place] = {at.heap, cache};
    leaver_.arm();  // its first use makes its destructor run when the thread ends
  }

 private:
  struct tenant {
    std::uint64_t heap = 0;
    void* core = nullptr;
    const operations* how = nullptr;
  };

  struct leaver {
    leaver() noexcept = default;
    ~leaver() { leave(); }
    leaver(const leaver&) = delete;
    leaver& operator=(const leaver&) = delete;
    void arm() noexcept {}
  };

  static void leave() noexcept {
    has_ended_ = true;
    holding guard(lock_);
    for (unsigned i = 0; i < most; ++i) {
      const seat left = seats_[i];
      seats_[i] = {};
      if (left.heap != 0 && left.heap == tenants_[i].heap) tenants_[i].how->close_cache(tenants_[i].core, left.cache);
    }
  }

  static void before_fork() noexcept {
    lock_.acquire();
    for (const tenant& t : tenants_) {
      if (t.heap != 0) t.how->before_fork(t.core);
    }
  }

  static void after_fork_in_parent() noexcept {
    for (const tenant& t : tenants_) {
      if (t.heap != 0) t.how->after_fork_in_parent(t.core);
    }
    lock_.release();
  }

  static void after_fork_in_child() noexcept {
    for (unsigned i = 0; i < most; ++i) {
      const tenant& t = tenants_[i];
      if (t.heap != 0) t.how->after_fork_in_child(t.core, seats_[i].heap == t.heap ? seats_[i].cache : nullptr);
    }
    lock_.reset_after_fork();
  }

  static inline constinit lock<OS> lock_;
  static inline constinit std::array<tenant, most> tenants_{};
  static inline constinit std::uint64_t last_heap_ = 0;

  static inline constinit thread_local std::array<seat, most + 1> seats_{};
  static inline constinit thread_local bool has_ended_ = false;
  static inline thread_local leaver leaver_;
};

}  // namespace heapwright
