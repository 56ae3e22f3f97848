// Two allocators: what the first one does not have comes from the second. The first must know its
// own blocks, so that each goes back to where it came from.
#pragma once

#include <cstddef>

#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/core/parts.hpp>

namespace heapwright {

/// First choice and second choice. Owns both. Not thread-safe. Null when neither has memory.
template <class First, class Second>
class fallback : public forwards<fallback<First, Second>, true, First, Second> {
  using base = forwards<fallback, true, First, Second>;
  friend base;

  static_assert(
      allocator<First> && allocator<Second>,
      "fallback: both parts must be allocators: allocate(layout) and deallocate(void*, layout), both noexcept");
  static_assert(
      can_own<First>,
      "fallback: the first part must tell which blocks are its own (owns), or nobody knows where a block goes back to; "
      "if it never runs out, you need no fallback, and if it takes certain sizes only, use segregate");

 public:
  /// Both parts as their default constructors make them.
  fallback() = default;

  /// The parts are constructed in place, from arguments given with from.
  template <class... F, class... S>
  explicit fallback(std::tuple<F...>&& first, std::tuple<S...>&& second = from())
      : first_(built<First>(std::move(first))), second_(built<Second>(std::move(second))) {}

  /// From First, and from Second when First returns null. Null when both do.
  [[nodiscard]] void* allocate(layout l) noexcept {
    if (void* const p = first_.allocate(l)) [[likely]]
      return p;
    return second_.allocate(l);
  }

  /// Asks First whether it owns p, and frees in Second if it does not. Null does nothing.
  void deallocate(void* p, layout l) noexcept { first_.owns(p) ? first_.deallocate(p, l) : second_.deallocate(p, l); }

  /// As above, where both parts can free without a layout.
  using base::deallocate;

  /// The parts.
  [[nodiscard]] First& first() noexcept { return first_; }
  [[nodiscard]] Second& second() noexcept { return second_; }

 private:
  template <class Self, class F>
  static void each_part(Self& self, F f) noexcept {
    f(self.first_);
    f(self.second_);
  }

  template <class Self, class F>
  static auto with_owner(Self& self, const void* p, F f) noexcept {
    return self.first_.owns(p) ? f(self.first_) : f(self.second_);
  }

  First first_;
  Second second_;
};

}  // namespace heapwright
