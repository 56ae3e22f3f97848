// Any allocator of the kit for any container of the standard library:
//
//   stack_arena<4096> memory;
//   std::vector<int, std_allocator<int, stack_arena<4096>>> v{memory};  // or std::list, std::map
//
// It refers to its allocator; an allocator that is an empty class it has by value. Containers take
// their allocator along when they are moved or swapped, so that both stay O(1), and do not when
// they are copy-assigned: each stays where it was put.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include <heapwright/core/concepts.hpp>

namespace heapwright {

/// Meets the standard's requirements of an allocator of T. Throws std::bad_alloc when A has no
/// memory, std::bad_array_new_length when n objects are more than any memory. Two are equal when
/// they refer to the same A. A must outlive all blocks. As thread-safe as A.
template <class T, allocator A>
class std_allocator {
  static constexpr bool by_value = std::is_empty_v<A> && std::is_default_constructible_v<A>;

 public:
  /// What a container asks its allocator: it is taken along by moves and swaps, not by copies.
  using value_type = T;
  using is_always_equal = std::bool_constant<by_value>;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  /// This allocator for another type: containers allocate nodes with it.
  template <class U>
  struct rebind {
    using other = std_allocator<U, A>;  ///< for objects of type U, from the same A
  };

  /// Only where A is an empty class: it is held by value.
  std_allocator() noexcept
    requires by_value
  = default;

  /// Refers to `memory`, which must outlive all blocks. Not explicit: a container is given the
  /// allocator itself, as in `std::list<int, ...> l{memory}`.
  std_allocator(A& memory) noexcept {
    if constexpr (!by_value) memory_ = &memory;
  }

  /// Refers to the same allocator as `other`.
  template <class U>
  std_allocator(const std_allocator<U, A>& other) noexcept : memory_(other.memory_) {}

  /// Uninitialised memory for n objects. Throws std::bad_alloc when A has none, and
  /// std::bad_array_new_length when n objects are more than half of the address space.
  [[nodiscard]] T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) [[unlikely]]
      throw std::bad_array_new_length();
    void* const p = memory().allocate({n * sizeof(T), alignof(T)});
    if (p == nullptr) [[unlikely]]
      throw std::bad_alloc();
    return static_cast<T*>(p);
  }

  /// Frees what allocate(n) returned. Does not destroy the objects.
  void deallocate(T* p, std::size_t n) noexcept { memory().deallocate(p, {n * sizeof(T), alignof(T)}); }

#ifdef __cpp_lib_allocate_at_least
  /// At least n objects: as many as the block that A chose really holds. With C++23.
  [[nodiscard]] std::allocation_result<T*> allocate_at_least(std::size_t n)
    requires has_usable_size<A> && can_deallocate_unsized<A>
  {
    T* const p = allocate(n);
    return {p, memory().usable_size(p) / sizeof(T)};
  }
#endif

  /// The allocator that it refers to.
  [[nodiscard]] A& memory() noexcept {
    if constexpr (by_value) {
      return memory_;
    } else {
      return *memory_;
    }
  }

  template <class U>
  [[nodiscard]] bool operator==(const std_allocator<U, A>& other) const noexcept {
    if constexpr (by_value) {
      return true;
    } else {
      return memory_ == other.memory_;
    }
  }

 private:
  template <class U, allocator B>
  friend class std_allocator;

  [[no_unique_address]] std::conditional_t<by_value, A, A*> memory_{};
};

}  // namespace heapwright
