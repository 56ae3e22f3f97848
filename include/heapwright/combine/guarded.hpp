// An allocator whose blocks have canaries before and behind them, looked at when they come back.
// For finding who writes where he should not, in any build; what it finds ends the process with a
// message.
//
//   [ padding | layout, state | block | canary ]      the head lies directly before the block
//
// The head's state is a value made from the block's address: one for live blocks, another for free
// ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/core/hash.hpp>

namespace heapwright {

/// A with canaries. Owns A. As thread-safe as A. Each block costs 32 bytes and an alignment more.
template <class A>
class guarded : public forwards<guarded<A>, true, A> {
  using base = forwards<guarded, true, A>;
  friend base;

  static_assert(
      allocator<A>,
      "guarded: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  /// Arguments are those of A.
  template <class... Arguments>
    requires(!takes_layout<A, Arguments...> && std::is_constructible_v<A, Arguments...>)
  explicit guarded(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  /// For a part made for one layout, which becomes that of the whole block.
  template <class... Arguments>
    requires takes_layout<A, layout, Arguments...>
  explicit guarded(layout block, Arguments&&... arguments)
      : block_{block}, part_(widened(block), std::forward<Arguments>(arguments)...) {}

  /// A block of the layout that it was made for. Null when the part has no memory.
  [[nodiscard]] void* allocate() noexcept
    requires takes_layout<A, layout>
  {
    return allocate(block_.of);
  }

  /// A block with canaries. Null when the part has no memory for all of it. O(1) beyond what the
  /// part takes.
  [[nodiscard]] void* allocate(layout l) noexcept {
    const layout whole = widened(l);
    if (whole.size < l.size) return nullptr;
    auto* const raw = static_cast<std::byte*>(part_.allocate(whole));
    if (raw == nullptr) return nullptr;
    std::byte* const p = raw + before(l);
    set_up(p, l);
    return p;
  }

  /// Looks at the canaries, and ends the process with a message where one was overwritten, the
  /// layout is not that of the request, or the block is free already. Null does nothing.
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) return;
    check(p, l);
    head_of(p)->state = ~live_value(p);
    part_.deallocate(static_cast<std::byte*>(p) - before(l), widened(l));
  }

  /// Frees without a layout: that of the request is written before the block. Looks at the canaries
  /// too.
  void deallocate(void* p) noexcept {
    if (p != nullptr) deallocate(p, {head_of(p)->size, head_of(p)->alignment});
  }

  /// Bytes that were asked for: the canary lies directly behind them. `p` is a live block.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept { return head_of(p)->size; }

  /// Changes the size in place, with its canary. False where the part cannot, or where another
  /// alignment would move the block; it is as it was then. Looks at the canaries first.
  [[nodiscard]] bool try_resize(void* p, layout from, layout to) noexcept
    requires can_resize<A>
  {
    check(p, from);
    const layout whole = widened(to);
    if (whole.size < to.size || before(to) != before(from)) return false;
    if (!part_.try_resize(static_cast<std::byte*>(p) - before(from), widened(from), whole)) return false;
    set_up(static_cast<std::byte*>(p), to);
    return true;
  }

  /// As realloc of C. Moves the block always, so that the old one's canaries are looked at. Null:
  /// no memory, and p is as it was.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept
    requires can_reallocate<A>
  {
    return reallocate_by_copy(*this, p, size);
  }

  /// Dies if the block was damaged; for looking at a block that is still in use.
  void check(const void* p, layout l) const noexcept {
    const head* const h = head_of(p);
    if (h->state == ~live_value(p)) die("double free", p, "(the block is free already)");
    if (h->state != live_value(p))
      die("write before the beginning of a block", p, "(or not a block of this allocator)");
    if (h->size != l.size || h->alignment != l.alignment)
      die("free with a wrong layout", p, "(it was allocated with another)");
    if (std::memcmp(static_cast<const std::byte*>(p) + l.size, canary, sizeof canary) != 0)
      die("write past the end of a block", p, "(found when it was freed)");
  }

  /// The part. What is allocated there directly has no canaries.
  [[nodiscard]] A& part() noexcept { return part_; }

 private:
  struct head {
    std::size_t size;
    std::size_t alignment;
    std::uintptr_t state;
  };

  static constexpr unsigned char canary[8] = {0xC4, 0x5A, 0x91, 0xE7, 0x3B, 0xD2, 0x68, 0x0F};

  static std::size_t before(layout l) noexcept { return align_up(sizeof(head), std::max(l.alignment, alignof(head))); }

  static layout widened(layout l) noexcept {
    return {before(l) + l.size + sizeof canary, std::max(l.alignment, alignof(head))};
  }

  static void set_up(std::byte* p, layout l) noexcept {
    *head_of(p) = {l.size, l.alignment, live_value(p)};
    std::memcpy(p + l.size, canary, sizeof canary);
  }

  static head* head_of(const void* p) noexcept { return reinterpret_cast<head*>(address_of(p) - sizeof(head)); }
  static std::uintptr_t live_value(const void* p) noexcept { return fibonacci_hash(address_of(p)) + 0xA110CA7ED; }

  [[no_unique_address]] block_layout<A> block_;
  A part_;
};

}  // namespace heapwright
