// A mutex of one word that needs no initialisation (all zero is unlocked), allocates nothing and
// survives fork.
//
// States: 0 free; 1 held; 2 held and somebody may be sleeping. Only the holder leaves 1 or 2,
// always to 0, and wakes one sleeper if it was 2. A sleeper that wakes takes the lock as 2, since
// others may still sleep. (Drepper, "Futexes Are Tricky", mutex 2.) A spin comes first, a
// microsecond or more where the processor takes a hint to wait: to sleep and be woken takes several
// (docs/design/0024).
#pragma once

#include <atomic>
#include <cstdint>

#include <heapwright/platform/concept.hpp>

namespace heapwright {

/// A mutex. Not recursive. Owned by no thread: another one may release it.
template <platform OS>
class lock {
 public:
  /// Free.
  constexpr lock() noexcept = default;
  lock(const lock&) = delete;
  lock& operator=(const lock&) = delete;

  /// Waits until the lock is free, and takes it.
  void acquire() noexcept {
    std::uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed)) [[unlikely]]
      acquire_contended();
  }

  /// Takes the lock if it is free; false if it is not. Does not wait.
  [[nodiscard]] bool try_acquire() noexcept {
    std::uint32_t expected = 0;
    return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  /// Gives the lock up; `acquire` or `try_acquire` came before. Wakes one thread that sleeps on it.
  void release() noexcept {
    if (word_.exchange(0, std::memory_order_release) == 2) [[unlikely]]
      OS::wake_one(word_);
  }

  /// In the child of a fork whose parent held the lock through it: free again, with nobody
  /// sleeping.
  void reset_after_fork() noexcept { word_.store(0, std::memory_order_release); }

 private:
  [[gnu::noinline]] void acquire_contended() noexcept {
    constexpr int spins = 100;
    for (int i = 0; i < spins; ++i) {
      if (word_.load(std::memory_order_relaxed) == 0 && try_acquire()) return;
      OS::relax();
    }
    while (word_.exchange(2, std::memory_order_acquire) != 0) OS::wait(word_, 2);
  }

  std::atomic<std::uint32_t> word_{0};
};

/// The system's own, where the platform brings one: there, the thread that has taken it has to
/// release it.
template <platform OS>
  requires requires { typename OS::system_lock; }
class lock<OS> : public OS::system_lock {};

/// For what only one thread uses, or what another lock guards.
class no_lock {
 public:
  /// Free, always.
  constexpr no_lock() noexcept = default;
  no_lock(const no_lock&) = delete;
  no_lock& operator=(const no_lock&) = delete;

  /// They do nothing.
  void acquire() noexcept {}
  [[nodiscard]] bool try_acquire() noexcept { return true; }
  void release() noexcept {}
  void reset_after_fork() noexcept {}
};

/// Holds a lock for a scope.
template <class Lock>
class [[nodiscard]] holding {
 public:
  /// Takes the lock; the destructor releases it.
  explicit holding(Lock& l) noexcept : lock_(l) { lock_.acquire(); }
  ~holding() { lock_.release(); }
  holding(const holding&) = delete;
  holding& operator=(const holding&) = delete;

 private:
  Lock& lock_;
};

}  // namespace heapwright
