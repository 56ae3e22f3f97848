// One allocator per size: a pool or slab for blocks of 16 bytes, one for 32, and so on. A request goes to the smallest that holds
// it, so rounding wastes less than `Step` bytes; where the size is a constant, so is the choice.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>

namespace heapwright {

/// Requests of up to `Largest` bytes, at alignments up to `Step`; null for others ("not from me"). A is made for one layout: A(layout,
/// arguments...). Not thread-safe.
template <class A, std::size_t Largest = 512, std::size_t Step = 16>
class bucketed {
  static_assert(
      allocator<A>,
      "bucketed: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");
  static_assert(is_power_of_two(Step) && Step >= 8 && Largest >= Step && Largest % Step == 0,
                "bucketed: the step must be a power of two of at least 8, and the largest size a multiple of it");

 public:
  static constexpr std::size_t count = Largest / Step;

  /// Each bucket is A(its layout, arguments...); they are copied, so share a source by reference.
  template <class... Arguments>
  explicit bucketed(const Arguments&... arguments) : bucketed(std::make_index_sequence<count>{}, arguments...) {}

  [[nodiscard]] void* allocate(layout l) noexcept {
    if (!fits(l)) [[unlikely]]
      return nullptr;
    A& of_size = buckets_[bucket(l.size)];
    if constexpr (has_one_layout<A>) {
      return of_size.allocate();
    } else {
      return of_size.allocate(layout_of(bucket(l.size)));
    }
  }

  void deallocate(void* p, layout l) noexcept {
    A& of_size = buckets_[bucket(l.size)];
    if constexpr (has_one_layout<A>) {
      of_size.deallocate(p);
    } else {
      of_size.deallocate(p, layout_of(bucket(l.size)));
    }
  }

  /// O(buckets) times what owns of one costs.
  [[nodiscard]] bool owns(const void* p) const noexcept
    requires can_own<A>
  {
    for (const A& b : buckets_) {
      if (b.owns(p)) return true;
    }
    return false;
  }

  /// In place when both sizes share a bucket.
  [[nodiscard]] bool try_resize(void*, layout old, layout wanted) noexcept {
    return fits(wanted) && bucket(old.size) == bucket(wanted.size);
  }

  void reset() noexcept
    requires can_reset<A>
  {
    for (A& b : buckets_) b.reset();
  }

  std::size_t trim() noexcept
    requires can_trim<A>
  {
    std::size_t bytes = 0;
    for (A& b : buckets_) bytes += b.trim();
    return bytes;
  }

  [[nodiscard]] static constexpr bool fits(layout l) noexcept { return l.size <= Largest && l.alignment <= Step; }

  /// The allocator that serves this size.
  [[nodiscard]] A& bucket_for(std::size_t size) noexcept { return buckets_[bucket(size)]; }

 private:
  template <std::size_t... I, class... Arguments>
  explicit bucketed(std::index_sequence<I...>, const Arguments&... arguments)
      : buckets_{{A(layout_of(I), arguments...)...}} {
    static_assert(std::is_constructible_v<A, layout, const Arguments&...>,
                  "bucketed: the part must be made for one layout, as A(layout, arguments...): a pool or a slab, say");
  }

  static constexpr std::size_t bucket(std::size_t size) noexcept { return size <= Step ? 0 : (size - 1) / Step; }
  static constexpr layout layout_of(std::size_t bucket) noexcept { return {(bucket + 1) * Step, Step}; }

  std::array<A, count> buckets_;
};

}  // namespace heapwright
