// Single objects and arrays in an allocator of the kit, owned by a std::unique_ptr that knows where
// they came from.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <heapwright/adapt/std_allocator.hpp>
#include <heapwright/core/concepts.hpp>

namespace heapwright {

/// Destroys and frees one T, or the T's of an array, that came from this A.
template <class T, allocator A>
class deleter {
 public:
  /// For one object. `memory` must outlive the deleter.
  explicit deleter(A& memory) noexcept
    requires(!std::is_array_v<T>)
      : memory_(memory) {}

  /// For an array of `count` objects. `memory` must outlive the deleter.
  deleter(A& memory, std::size_t count) noexcept
    requires std::is_array_v<T>
      : memory_(memory), count_(count) {}

  /// Destroys the objects and frees their memory. O(objects).
  void operator()(std::remove_extent_t<T>* p) noexcept {
    std::destroy_n(p, std::size_t{count_});
    memory_.deallocate(p, count_);
  }

 private:
  struct one {
    constexpr operator std::size_t() const noexcept { return 1; }
  };

  [[no_unique_address]] std_allocator<std::remove_extent_t<T>, A> memory_;
  [[no_unique_address]] std::conditional_t<std::is_array_v<T>, std::size_t, one> count_{};
};

/// A unique_ptr that frees to A. It must not outlive A.
template <class T, allocator A>
using unique = std::unique_ptr<T, deleter<T, A>>;

/// A T in `memory`. Throws std::bad_alloc when there is none, and what T's constructor throws; then
/// nothing is lost.
template <class T, allocator A, class... Arguments>
  requires(!std::is_array_v<T>)
[[nodiscard]] unique<T, A> make_unique(A& memory, Arguments&&... arguments) {
  std_allocator<T, A> from(memory);
  T* const p = from.allocate(1);
  try {
    return unique<T, A>(std::construct_at(p, std::forward<Arguments>(arguments)...), deleter<T, A>(memory));
  } catch (...) {
    from.deallocate(p, 1);
    throw;
  }
}

/// An array of n value-initialised objects in `memory`, for T = U[]. Throws likewise.
template <class T, allocator A>
  requires std::is_unbounded_array_v<T>
[[nodiscard]] unique<T, A> make_unique(A& memory, std::size_t n) {
  using element = std::remove_extent_t<T>;
  std_allocator<element, A> from(memory);
  element* const p = from.allocate(n);
  try {
    std::uninitialized_value_construct_n(p, n);
  } catch (...) {
    from.deallocate(p, n);
    throw;
  }
  return unique<T, A>(p, deleter<T, A>(memory, n));
}

}  // namespace heapwright
