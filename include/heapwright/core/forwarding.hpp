// Forwarding: how an allocator that is made of others passes on what its parts can do.
//
// A combinator states once how a call reaches its parts:
//
//   each_part(self, f)         calls f(part) for every part
//   with_owner(self, p, f)     returns f(part) for the part that p came from
//
// One that has a single part, `part_`, and calls it as it is, says nothing: both are here.
//
// Every capability that follows from that is written here, and nowhere else. A combinator that does
// more (it counts, widens the request, or chooses a part by size) declares a function of the same
// name, which takes the place of the one here.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <heapwright/core/concepts.hpp>

namespace heapwright {

/// Bytes, summed over the parts of a combinator.
struct joint_stats {
  std::size_t in_use;  ///< by live blocks
  std::size_t held;    ///< taken from sources
};

/// realloc of C by allocation, copy and free: the block always moves. Null: no memory, and p is as
/// it was; or a size of zero, and p is freed.
template <class A>
[[nodiscard]] void* reallocate_by_copy(A& a, void* p, std::size_t size) noexcept {
  if (p != nullptr && size == 0) {
    a.deallocate(p);
    return nullptr;
  }
  void* const moved = a.allocate(layout{size});
  if (moved == nullptr || p == nullptr) return moved;
  std::memcpy(moved, p, std::min(size, a.usable_size(p)));
  a.deallocate(p);
  return moved;
}

/// Whether the first of these arguments of A is the one layout that A is made for.
template <class A, class... Arguments>
inline constexpr bool takes_layout = false;

template <class A, class First, class... Rest>
inline constexpr bool takes_layout<A, First, Rest...> =
    has_one_layout<A> && std::same_as<std::remove_cvref_t<First>, layout> && std::is_constructible_v<A, First, Rest...>;

/// The layout that a combinator around an allocator for one layout was made for; nothing around
/// others.
template <class A>
struct block_layout {};

template <class A>
  requires takes_layout<A, layout>
struct block_layout<A> {
  layout of;
};

/// Base of the combinator `Derived`, which has these Parts; several parts of one type are named
/// twice. `FindsOwner`: with_owner can be called.
template <class Derived, bool FindsOwner, class... Parts>
class forwards {
  static constexpr bool is_single = sizeof...(Parts) == 1;

 public:
  /// A block of the part's one layout. Null when it has no memory.
  [[nodiscard]] void* allocate() noexcept
    requires is_single && (has_one_layout<Parts> && ...)
  {
    return Derived::with_owner(self(), nullptr, [](auto& part) { return part.allocate(); });
  }

  /// Frees in the part that has the block. Null does nothing.
  void deallocate(void* p) noexcept
    requires FindsOwner && (can_deallocate_unsized<Parts> && ...)
  {
    if (p != nullptr) Derived::with_owner(self(), p, [p](auto& part) { part.deallocate(p); });
  }

  /// Whether one of the parts owns p. Any pointer value will do.
  [[nodiscard]] bool owns(const void* p) const noexcept
    requires(can_own<Parts> && ...)
  {
    bool found = false;
    Derived::each_part(self(), [&](const auto& part) { found = found || part.owns(p); });
    return found;
  }

  /// Bytes that may be used behind p, as the part says that has the block.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept
    requires FindsOwner && (has_usable_size<Parts> && ...)
  {
    return Derived::with_owner(self(), p, [p](const auto& part) { return part.usable_size(p); });
  }

  /// In place, in the part that has the block. False where that part cannot; the block is as it was
  /// then.
  [[nodiscard]] bool try_resize(void* p, layout from, layout to) noexcept
    requires FindsOwner && (can_resize<Parts> || ...)
  {
    return Derived::with_owner(self(), p, [&]<class Part>(Part& part) {
      if constexpr (can_resize<Part>) return part.try_resize(p, from, to);
      return false;
    });
  }

  /// As realloc of C. In the part that has the block; where that one has no memory, in another.
  /// Null: no memory, and p is as it was; or a size of zero, and p is freed.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept
    requires FindsOwner && (can_reallocate<Parts> || ...) &&
             (is_single || ((can_deallocate_unsized<Parts> && has_usable_size<Parts>)&&...))
  {
    if (p == nullptr) return self().allocate(layout{size});
    void* const moved = Derived::with_owner(self(), p, [&]<class Part>(Part& part) -> void* {
      if constexpr (can_reallocate<Part>) return part.reallocate(p, size);
      if (size == 0) part.deallocate(p);
      return nullptr;
    });
    if constexpr (!is_single) {
      if (moved == nullptr && size != 0) return reallocate_by_copy(self(), p, size);
    }
    return moved;
  }

  /// Frees everything in each part.
  void reset() noexcept
    requires(can_reset<Parts> && ...)
  {
    Derived::each_part(self(), [](auto& part) { part.reset(); });
  }

  /// Trims each part that can; returns the sum of the bytes given back.
  std::size_t trim() noexcept
    requires(can_trim<Parts> || ...)
  {
    std::size_t bytes = 0;
    Derived::each_part(self(), [&]<class Part>(Part& part) {
      if constexpr (can_trim<Part>) bytes += part.trim();
    });
    return bytes;
  }

  /// A joint_stats with the sums over all parts; of a single part its own figures.
  [[nodiscard]] auto stats() const noexcept
    requires(has_stats<Parts> && ...)
  {
    if constexpr (is_single) {
      return Derived::with_owner(self(), nullptr, [](const auto& part) { return part.stats(); });
    } else {
      joint_stats sum{};
      Derived::each_part(self(), [&](const auto& part) {
        const auto s = part.stats();
        sum.in_use += s.in_use;
        sum.held += s.held;
      });
      return sum;
    }
  }

 protected:
  template <class Self, class F>
    requires is_single
  static void each_part(Self& self, F f) noexcept {
    f(self.part_);
  }

  template <class Self, class F>
    requires is_single
  static auto with_owner(Self& self, const void*, F f) noexcept {
    return f(self.part_);
  }

 private:
  [[nodiscard]] Derived& self() noexcept { return static_cast<Derived&>(*this); }
  [[nodiscard]] const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }
};

}  // namespace heapwright
