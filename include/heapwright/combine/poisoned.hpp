// An allocator whose blocks AddressSanitizer and Valgrind watch: a free block, and the bytes just behind a live one, may not be touched.
// The kit's own allocators do the former by themselves; this is for those of others. Without either tool it is the allocator alone.
//
// The first two words of a free block stay as they are: that is where allocators keep their links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/poison.hpp>

namespace heapwright {

/// A, watched. Owns A. As thread-safe as A.
template <class A>
class poisoned {
  static_assert(
      allocator<A>,
      "poisoned: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  template <class... Arguments>
  explicit poisoned(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  [[nodiscard]] void* allocate(layout l) noexcept {
    const layout with_zone = widened(l);
    if (with_zone.size < l.size) return nullptr;
    auto* const p = static_cast<std::byte*>(part_.allocate(with_zone));
    if constexpr (poisons) {
      if (p == nullptr) return nullptr;
      unpoison(p, l.size);
      poison(p + align_up(l.size, 8), with_zone.size - align_up(l.size, 8));
    }
    return p;
  }

  void deallocate(void* p, layout l) noexcept {
    const layout with_zone = widened(l);
    if constexpr (!poisons) return part_.deallocate(p, with_zone);
    std::uintptr_t at = address_of(p);
    __asm__("" : "+r"(at));  // an address, no longer a pointer that GCC would see used after it was freed
    unpoison(p, with_zone.size);
    part_.deallocate(p, with_zone);
    if (with_zone.size > links) poison(reinterpret_cast<void*>(at + links), with_zone.size - links);
  }

  [[nodiscard]] bool try_resize(void* p, layout from, layout to) noexcept
    requires can_resize<A>
  {
    const layout whole = widened(to);
    if (whole.size < to.size || !part_.try_resize(p, widened(from), whole)) return false;
    if constexpr (poisons) {
      auto* const b = static_cast<std::byte*>(p);
      if (to.size > from.size) unpoison(b + from.size, to.size - from.size);
      poison(b + align_up(to.size, 8), whole.size - align_up(to.size, 8));
    }
    return true;
  }

  void reset() noexcept
    requires can_reset<A>
  {
    part_.reset();
  }

  std::size_t trim() noexcept
    requires can_trim<A>
  {
    return part_.trim();
  }

  [[nodiscard]] bool owns(const void* p) const noexcept
    requires can_own<A>
  {
    return part_.owns(p);
  }

  [[nodiscard]] A& part() noexcept { return part_; }

 private:
  static constexpr std::size_t links = 2 * sizeof(void*);
  static constexpr std::size_t zone = 16;

  static constexpr layout widened(layout l) noexcept {
    return poisons ? layout{align_up(l.size, 8) + zone, l.alignment} : l;
  }

  A part_;
};

}  // namespace heapwright
