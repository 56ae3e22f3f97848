// One lock around an allocator, so that any thread may use it. Simple, and enough where allocation
// is rare; where it is not, put a cache per thread in front (cached.hpp).
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

/// A for any number of threads. Lock has acquire() and release(): `lock<linux_os>`, for example.
/// Owns A. Has the capabilities of A.
template <class A, class Lock>
class locked : public forwards<locked<A, Lock>, true, A> {
  using base = forwards<locked, true, A>;
  friend base;

  static_assert(allocator<A>,
                "locked: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  /// Arguments are those of A.
  template <class... Arguments>
    requires std::is_constructible_v<A, Arguments...>
  explicit locked(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  /// As the part does, with the lock held. Thread-safe.
  [[nodiscard]] void* allocate(layout l) noexcept {
    holding guard(lock_);
    return part_.allocate(l);
  }

  /// As the part does, with the lock held. From any thread.
  void deallocate(void* p, layout l) noexcept {
    holding guard(lock_);
    part_.deallocate(p, l);
  }

  using base::allocate;
  using base::deallocate;

  /// Calls f(A&) with the lock held: for several calls that belong together.
  template <class F>
  decltype(auto) with(F&& f) {
    holding guard(lock_);
    return std::forward<F>(f)(part_);
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

  mutable Lock lock_;
  A part_;
};

}  // namespace heapwright
