// One lock around an allocator, so that any thread may use it. Simple, and enough where allocation is rare; where it is not,
// put a stock per thread in front (cached.hpp).
#pragma once

#include <cstddef>
#include <utility>

#include <heapwright/core/concepts.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

/// A for any number of threads. Lock has acquire() and release(): lock<linux_os>, for example. Owns A. Has the capabilities of A.
template <class A, class Lock>
class locked {
  static_assert(allocator<A>,
                "locked: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  /// Arguments are those of A.
  template <class... Arguments>
  explicit locked(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  [[nodiscard]] void* allocate(layout l) noexcept {
    holding guard(lock_);
    return part_.allocate(l);
  }

  void deallocate(void* p, layout l) noexcept {
    holding guard(lock_);
    part_.deallocate(p, l);
  }

  void deallocate(void* p) noexcept
    requires can_deallocate_unsized<A>
  {
    holding guard(lock_);
    part_.deallocate(p);
  }

  [[nodiscard]] bool owns(const void* p) const noexcept
    requires can_own<A>
  {
    holding guard(lock_);
    return part_.owns(p);
  }

  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept
    requires has_usable_size<A>
  {
    holding guard(lock_);
    return part_.usable_size(p);
  }

  [[nodiscard]] bool try_resize(void* p, layout old, layout wanted) noexcept
    requires can_resize<A>
  {
    holding guard(lock_);
    return part_.try_resize(p, old, wanted);
  }

  void reset() noexcept
    requires can_reset<A>
  {
    holding guard(lock_);
    part_.reset();
  }

  std::size_t trim() noexcept
    requires can_trim<A>
  {
    holding guard(lock_);
    return part_.trim();
  }

  [[nodiscard]] auto stats() const noexcept
    requires has_stats<A>
  {
    holding guard(lock_);
    return part_.stats();
  }

  /// Calls f(A&) with the lock held: for several calls that belong together.
  template <class F>
  decltype(auto) with(F&& f) {
    holding guard(lock_);
    return std::forward<F>(f)(part_);
  }

 private:
  mutable Lock lock_;
  A part_;
};

}  // namespace heapwright
