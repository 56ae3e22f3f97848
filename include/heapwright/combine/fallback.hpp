// Two allocators: what the first one does not have comes from the second. The first must know its own blocks, so that
// each goes back to where it came from.
#pragma once

#include <cstddef>

#include <heapwright/core/concepts.hpp>
#include <heapwright/core/parts.hpp>

namespace heapwright {

/// First choice and second choice. Owns both. Not thread-safe. Null when neither has memory.
template <class First, class Second>
class fallback {
  static_assert(
      allocator<First> && allocator<Second>,
      "fallback: both parts must be allocators: allocate(layout) and deallocate(void*, layout), both noexcept");
  static_assert(
      can_own<First>,
      "fallback: the first part must tell which blocks are its own (owns), or nobody knows where a block goes back to; "
      "if it never runs out, you need no fallback, and if it takes certain sizes only, use segregate");

 public:
  fallback() = default;

  template <class... F, class... S>
  explicit fallback(std::tuple<F...>&& first, std::tuple<S...>&& second = from())
      : first_(built<First>(std::move(first))), second_(built<Second>(std::move(second))) {}

  [[nodiscard]] void* allocate(layout l) noexcept {
    if (void* const p = first_.allocate(l)) [[likely]]
      return p;
    return second_.allocate(l);
  }

  void deallocate(void* p, layout l) noexcept { first_.owns(p) ? first_.deallocate(p, l) : second_.deallocate(p, l); }

  void deallocate(void* p) noexcept
    requires can_deallocate_unsized<First> && can_deallocate_unsized<Second>
  {
    first_.owns(p) ? first_.deallocate(p) : second_.deallocate(p);
  }

  [[nodiscard]] bool owns(const void* p) const noexcept
    requires can_own<Second>
  {
    return first_.owns(p) || second_.owns(p);
  }

  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept
    requires has_usable_size<First> && has_usable_size<Second>
  {
    return first_.owns(p) ? first_.usable_size(p) : second_.usable_size(p);
  }

  [[nodiscard]] bool try_resize(void* p, layout old, layout wanted) noexcept
    requires can_resize<First> || can_resize<Second>
  {
    if (first_.owns(p)) {
      if constexpr (can_resize<First>) return first_.try_resize(p, old, wanted);
    } else {
      if constexpr (can_resize<Second>) return second_.try_resize(p, old, wanted);
    }
    return false;
  }

  void reset() noexcept
    requires can_reset<First> && can_reset<Second>
  {
    first_.reset();
    second_.reset();
  }

  std::size_t trim() noexcept
    requires can_trim<First> || can_trim<Second>
  {
    std::size_t bytes = 0;
    if constexpr (can_trim<First>) bytes += first_.trim();
    if constexpr (can_trim<Second>) bytes += second_.trim();
    return bytes;
  }

  [[nodiscard]] First& first() noexcept { return first_; }
  [[nodiscard]] Second& second() noexcept { return second_; }

 private:
  First first_;
  Second second_;
};

}  // namespace heapwright
