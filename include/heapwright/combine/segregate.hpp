// Two allocators: one for small requests, one for the rest. The size tells where a block goes back
// to, so neither needs to know its own; where the size is a constant, so is the choice.
#pragma once

#include <cstddef>

#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/core/parts.hpp>

namespace heapwright {

/// Requests of up to `Largest` bytes go to Small, others to Large; neither stands in for the other.
/// Owns both. Not thread-safe.
template <std::size_t Largest, class Small, class Large>
class segregate : public forwards<segregate<Largest, Small, Large>, can_own<Small>, Small, Large> {
  using base = forwards<segregate, can_own<Small>, Small, Large>;
  friend base;

  static_assert(
      allocator<Small> && allocator<Large>,
      "segregate: both parts must be allocators: allocate(layout) and deallocate(void*, layout), both noexcept");
  static_assert(Largest > 0, "segregate: the limit is the largest size that the small part takes; 0 leaves it nothing");

 public:
  /// Both parts as their default constructors make them.
  segregate() = default;

  /// The parts are constructed in place, from arguments given with from.
  template <class... S, class... L>
  explicit segregate(std::tuple<S...>&& small, std::tuple<L...>&& large = from())
      : small_(built<Small>(std::move(small))), large_(built<Large>(std::move(large))) {}

  /// From Small if `l.size` is at most `Largest`, otherwise from Large. Null when that one has no
  /// memory.
  [[nodiscard]] void* allocate(layout l) noexcept {
    return l.size <= Largest ? small_.allocate(l) : large_.allocate(l);
  }

  /// In the part that the size tells. Null does nothing.
  void deallocate(void* p, layout l) noexcept { l.size <= Largest ? small_.deallocate(p, l) : large_.deallocate(p, l); }

  /// Without a layout, Small is asked whether it owns p.
  using base::deallocate;

  /// In place, in the part that has the block. False where that part cannot, and always across the
  /// limit; the block is as it was then.
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

  /// As realloc of C. The block moves where it crosses the limit. Null: no memory, and p is as it
  /// was.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept
    requires can_own<Small> && can_reallocate<Small> && can_reallocate<Large> && has_usable_size<Small> &&
             has_usable_size<Large> && can_deallocate_unsized<Small> && can_deallocate_unsized<Large>
  {
    if (p == nullptr) return allocate(layout{size});
    const bool is_small = small_.owns(p);
    if (size != 0 && is_small != (size <= Largest)) return reallocate_by_copy(*this, p, size);
    return is_small ? small_.reallocate(p, size) : large_.reallocate(p, size);
  }

  /// The parts.
  [[nodiscard]] Small& small() noexcept { return small_; }
  [[nodiscard]] Large& large() noexcept { return large_; }

 private:
  template <class Self, class F>
  static void each_part(Self& self, F f) noexcept {
    f(self.small_);
    f(self.large_);
  }

  template <class Self, class F>
  static auto with_owner(Self& self, const void* p, F f) noexcept {
    return self.small_.owns(p) ? f(self.small_) : f(self.large_);
  }

  Small small_;
  Large large_;
};

}  // namespace heapwright
