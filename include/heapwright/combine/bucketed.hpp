// One allocator per size: a pool or slab for blocks of 16 bytes, one for 32, and so on. A request
// goes to the smallest that holds it, so rounding wastes less than `Step` bytes; where the size is
// a constant, so is the choice.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>

namespace heapwright {

/// Requests of up to `Largest` bytes, at alignments up to `Step`; null for others ("not from me").
/// A is made for one layout: A(layout, arguments...). Not thread-safe.
template <class A, std::size_t Largest = 512, std::size_t Step = 16>
class bucketed : public forwards<bucketed<A, Largest, Step>, can_own<A>, A, A> {
  using base = forwards<bucketed, can_own<A>, A, A>;
  friend base;

  static_assert(
      allocator<A>,
      "bucketed: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");
  static_assert(is_power_of_two(Step) && Step >= 8 && Largest >= Step && Largest % Step == 0,
                "bucketed: the step must be a power of two of at least 8, and the largest size a multiple of it");

 public:
  /// How many buckets there are.
  static constexpr std::size_t count = Largest / Step;

  /// Each bucket is A(its layout, arguments...); they are copied, so share a source by reference.
  template <class... Arguments>
  explicit bucketed(const Arguments&... arguments) : bucketed(indexes_for<Arguments...>(), arguments...) {}

  /// A block from the bucket for this size. Null when that bucket has no memory, or the layout fits
  /// no bucket. O(1) beyond what the bucket takes.
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

  /// Without a layout, each bucket is asked whether it owns p: O(buckets) times what owns of one
  /// costs.
  using base::deallocate;

  /// Goes back to the bucket that the size tells. Null does nothing. O(1) beyond what the bucket
  /// takes.
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) return;
    if constexpr (checks_callers) {
      if (!fits(l)) die("free with a wrong layout", p, "(larger than every bucket)");
    }
    A& of_size = buckets_[bucket(l.size)];
    if constexpr (has_one_layout<A>) {
      of_size.deallocate(p);
    } else {
      of_size.deallocate(p, layout_of(bucket(l.size)));
    }
  }

  /// True when both sizes share a bucket: nothing has to be done. Otherwise false. O(1).
  [[nodiscard]] bool try_resize(void*, layout old, layout wanted) noexcept {
    return fits(wanted) && bucket(old.size) == bucket(wanted.size);
  }

  void* reallocate(void*, std::size_t) = delete;  // a part must not keep a block beyond the size of its bucket

  /// Whether there is a bucket for this layout.
  [[nodiscard]] static constexpr bool fits(layout l) noexcept { return l.size <= Largest && l.alignment <= Step; }

  /// The allocator that serves this size.
  [[nodiscard]] A& bucket_for(std::size_t size) noexcept { return buckets_[bucket(size)]; }

 private:
  template <class Self, class F>
  static void each_part(Self& self, F f) noexcept {
    for (auto& part : self.buckets_) f(part);
  }

  template <class Self, class F>
  static auto with_owner(Self& self, const void* p, F f) noexcept {
    std::size_t i = 0;
    while (i + 1 < count && !self.buckets_[i].owns(p)) ++i;
    return f(self.buckets_[i]);
  }

  template <std::size_t... I, class... Arguments>
  explicit bucketed(std::index_sequence<I...>, const Arguments&... arguments)
      : buckets_{{A(layout_of(I), arguments...)...}} {}

  /// Its type is deduced, so that the compiler comes to the assertion before it constructs a part.
  template <class... Arguments>
  static consteval auto indexes_for() noexcept {
    static_assert(std::is_constructible_v<A, layout, const Arguments&...>,
                  "bucketed: the part must be made for one layout, as A(layout, arguments...): a pool or a slab, say");
    return std::make_index_sequence<count>{};
  }

  static constexpr std::size_t bucket(std::size_t size) noexcept { return size <= Step ? 0 : (size - 1) / Step; }
  static constexpr layout layout_of(std::size_t bucket) noexcept { return {(bucket + 1) * Step, Step}; }

  std::array<A, count> buckets_;
};

}  // namespace heapwright
