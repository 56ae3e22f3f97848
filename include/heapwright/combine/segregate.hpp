// Two allocators: one for small requests, one for the rest. The size tells where a block goes back to, so neither needs to know its
// own; where the size is a constant, so is the choice.
#pragma once

#include <cstddef>

#include <heapwright/core/concepts.hpp>
#include <heapwright/core/parts.hpp>

namespace heapwright {

/// Requests of up to `Largest` bytes go to Small, others to Large; neither stands in for the other. Owns both. Not thread-safe.
template <std::size_t Largest, class Small, class Large>
class segregate {
  static_assert(
      allocator<Small> && allocator<Large>,
      "segregate: both parts must be allocators: allocate(layout) and deallocate(void*, layout), both noexcept");
  static_assert(Largest > 0, "segregate: the limit is the largest size that the small part takes; 0 leaves it nothing");

 public:
  segregate() = default;

  template <class... S, class... L>
  explicit segregate(std::tuple<S...>&& small, std::tuple<L...>&& large = from())
      : small_(built<Small>(std::move(small))), large_(built<Large>(std::move(large))) {}

  [[nodiscard]] void* allocate(layout l) noexcept {
    return l.size <= Largest ? small_.allocate(l) : large_.allocate(l);
  }

  void deallocate(void* p, layout l) noexcept { l.size <= Largest ? small_.deallocate(p, l) : large_.deallocate(p, l); }

  void deallocate(void* p) noexcept
    requires can_own<Small> && can_deallocate_unsized<Small> && can_deallocate_unsized<Large>
  {
    small_.owns(p) ? small_.deallocate(p) : large_.deallocate(p);
  }

  [[nodiscard]] bool owns(const void* p) const noexcept
    requires can_own<Small> && can_own<Large>
  {
    return small_.owns(p) || large_.owns(p);
  }

  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept
    requires can_own<Small> && has_usable_size<Small> && has_usable_size<Large>
  {
    return small_.owns(p) ? small_.usable_size(p) : large_.usable_size(p);
  }

  /// Never across the limit.
  [[nodiscard]] bool try_resize(void* p, layout old, layout wanted) noexcept
    requires can_resize<Small> || can_resize<Large>
  {
    if ((old.size <= Largest) != (wanted.size <= Largest)) return false;
    if (old.size <= Largest) {
      if constexpr (can_resize<Small>) return small_.try_resize(p, old, wanted);
    } else {
      if constexpr (can_resize<Large>) return large_.try_resize(p, old, wanted);
    }
    return false;
  }

  void reset() noexcept
    requires can_reset<Small> && can_reset<Large>
  {
    small_.reset();
    large_.reset();
  }

  std::size_t trim() noexcept
    requires can_trim<Small> || can_trim<Large>
  {
    std::size_t bytes = 0;
    if constexpr (can_trim<Small>) bytes += small_.trim();
    if constexpr (can_trim<Large>) bytes += large_.trim();
    return bytes;
  }

  [[nodiscard]] Small& small() noexcept { return small_; }
  [[nodiscard]] Large& large() noexcept { return large_; }

 private:
  Small small_;
  Large large_;
};

}  // namespace heapwright
