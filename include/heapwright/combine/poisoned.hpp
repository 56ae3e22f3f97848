// An allocator whose blocks AddressSanitizer and Valgrind watch: a free block, and the bytes just
// behind a live one, may not be touched. The kit's own allocators do the former by themselves; this
// is for those of others. Without either tool it is the allocator alone.
//
//   block of A:  [ bytes asked for | poisoned ... | size asked for, poisoned ]
//
// The size is kept where A tells the size of its blocks: so it needs no layout to free one. The
// first two words of a free block stay as they are: that is where allocators keep their links.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/core/poison.hpp>

namespace heapwright {

/// A, watched. Owns A. As thread-safe as A.
template <class A>
class poisoned : public forwards<poisoned<A>, true, A> {
  using base = forwards<poisoned, true, A>;
  friend base;

  static_assert(
      allocator<A>,
      "poisoned: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  /// Arguments are those of A.
  template <class... Arguments>
    requires std::is_constructible_v<A, Arguments...>
  explicit poisoned(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  /// A block of the part. Under either tool only its first `l.size` bytes may be touched; of a part
  /// of one layout that tells `usable_size`, the whole block, as there is no room to note `l.size`.
  /// Null when the part has no memory.
  [[nodiscard]] void* allocate(layout l) noexcept {
    const layout whole = widened(l);
    if (whole.size < l.size) return nullptr;
    void* const p = part_.allocate(whole);
    if (poisons && p != nullptr) watch_from(p, 0, l.size, room_of(p, whole));
    return p;
  }

  /// A block of a part of one layout. The whole block may be touched.
  [[nodiscard]] void* allocate() noexcept
    requires has_one_layout<A>
  {
    void* const p = part_.allocate();
    if constexpr (poisons && tells_sizes) {
      if (p != nullptr) unpoison(p, part_.usable_size(p));
    }
    return p;
  }

  /// Under either tool the block may not be touched from now on, but for its first 16 bytes, where
  /// the part may keep links. Null does nothing.
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) return;
    free_watched(p, room_of(p, widened(l)), [&] { part_.deallocate(p, widened(l)); });
  }

  /// The block is watched from now on if A tells its size.
  void deallocate(void* p) noexcept
    requires can_deallocate_unsized<A>
  {
    if (p == nullptr) return;
    free_watched(p, room_of(p, layout{0}), [&] { part_.deallocate(p); });
  }

  /// Bytes that may be used behind p: with either tool those asked for; of a part of one layout,
  /// the whole block.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept
    requires has_usable_size<A>
  {
    if constexpr (!keeps_size) return part_.usable_size(p);
    return size_word(p, part_.usable_size(p));
  }

  /// As the part does. What was written stays; new bytes count as not written.
  [[nodiscard]] bool try_resize(void* p, layout from, layout to) noexcept
    requires can_resize<A>
  {
    const layout whole = widened(to);
    const std::size_t room_before = room_of(p, widened(from));
    if (whole.size < to.size || !part_.try_resize(p, widened(from), whole)) return false;
    if constexpr (poisons) {
      const std::size_t room = room_of(p, whole);
      const std::size_t kept = std::min({from.size, to.size, room, room_before});
      reveal(p, kept);
      watch_from(p, kept, to.size, room);
    }
    return true;
  }

  /// As realloc of C. Moves the block always under either tool, so that old pointers are caught.
  /// Null: no memory, and p is as it was.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept
    requires can_reallocate<A> && has_usable_size<A> && can_deallocate_unsized<A>
  {
    if constexpr (!poisons) return part_.reallocate(p, size);
    return reallocate_by_copy(*this, p, size);
  }

  /// The part. Blocks allocated there directly are not watched.
  [[nodiscard]] A& part() noexcept { return part_; }

 private:
  static constexpr std::size_t links = 2 * sizeof(void*);
  static constexpr bool tells_sizes = has_usable_size<A>;
  static constexpr bool has_zone = poisons && !has_one_layout<A>;  // blocks of one layout have no room for more
  static constexpr bool keeps_size = has_zone && tells_sizes;
  static constexpr std::size_t zone = 16;

  [[nodiscard]] static constexpr layout widened(layout l) noexcept {
    return has_zone ? layout{align_up(l.size, 8) + zone, l.alignment} : l;
  }

  /// Bytes of the whole block of A, as far as is known.
  [[nodiscard]] std::size_t room_of(const void* p, layout whole) const noexcept {
    if constexpr (tells_sizes) return part_.usable_size(p);
    return whole.size;
  }

  static hidden<std::size_t>& size_word(const void* p, std::size_t room) noexcept {
    return *reinterpret_cast<hidden<std::size_t>*>(align_down(address_of(p) + room, 8) - 8);
  }

  /// The first `kept` bytes of the block stay as they are.
  static void watch_from(void* p, std::size_t kept, std::size_t asked, std::size_t room) noexcept {
    auto* const b = static_cast<std::byte*>(p);
    if constexpr (!has_zone && tells_sizes) asked = room;
    if (asked > kept) unpoison(b + kept, asked - kept);
    if (room > align_up(asked, 8)) poison(b + align_up(asked, 8), room - align_up(asked, 8));
    if constexpr (keeps_size) size_word(p, room) = asked;
  }

  template <class Free>
  void free_watched(void* p, std::size_t room, Free free) noexcept {
    if constexpr (!poisons) return free();
    std::uintptr_t at = address_of(p);
    __asm__("" : "+r"(at));  // an address, no longer a pointer that GCC would see used after it was freed
    unpoison(p, room);
    free();
    if (room > links) poison(reinterpret_cast<void*>(at + links), room - links);
  }

  A part_;
};

}  // namespace heapwright
