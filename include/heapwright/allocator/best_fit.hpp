// Blocks of any size in one range of memory that the caller has: each from the smallest free block
// that is large enough, or from space that was never used.
//
//   range:  [ blocks_ ... | untouched ... | tiny_ ]
//                                         ^--- tiny_.begin()
//
// blocks_ grows upwards and has a tag of 8 bytes per block. Requests of at most 16 bytes lie in
// tiny_, which grows downwards and has none; where it has no room for a page they become blocks.
//
// Invariant: every byte of the range is in blocks_, untouched, or in tiny_; outside of live blocks
// all of it is poisoned.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <heapwright/allocator/block_guard.hpp>
#include <heapwright/allocator/block_range.hpp>
#include <heapwright/allocator/recent_frees.hpp>
#include <heapwright/allocator/tagged_block.hpp>
#include <heapwright/allocator/tiny_pages.hpp>
#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/poison.hpp>

namespace heapwright {

/// What a best_fit is like; its template argument.
struct best_fit_plan {
  /// Of every block, and the step of sizes: 16 bytes to 4 KiB. Beyond 16 there are no tiny blocks.
  std::size_t alignment = 16;
  merge merging = merge::immediate;  ///< when free neighbours become one block
};

/// Bytes. held = in_use + rounding + headers + available.
struct best_fit_stats {
  std::size_t held;          ///< the range, without what its alignment cut off
  std::size_t in_use;        ///< that live blocks were asked for
  std::size_t rounding;      ///< that live blocks have beyond that
  std::size_t headers;       ///< of live blocks and tiny pages
  std::size_t available;     ///< free blocks and untouched space
  std::size_t largest_free;  ///< the largest block there is without merging, its header included

  /// Of both ranges; largest_free is the larger one of the two.
  best_fit_stats& operator+=(const best_fit_stats& other) noexcept {
    held += other.held;
    in_use += other.in_use;
    rounding += other.rounding;
    headers += other.headers;
    available += other.available;
    largest_free = std::max(largest_free, other.largest_free);
    return *this;
  }
};

/// Blocks of any layout in one range of memory. Not thread-safe. Null when nothing that is free is
/// large enough; then everything is as it was. The object takes 8 KiB with the default plan, and
/// keeps everything else in the range.
template <best_fit_plan Plan = best_fit_plan{}>
class best_fit {
  static_assert(is_power_of_two(Plan.alignment) && Plan.alignment >= 16 && Plan.alignment <= 4 * KiB,
                "best_fit_plan: the alignment of blocks must be a power of two, at least 16 bytes and at most 4 KiB");

 public:
  /// Without memory: every request gets null until attach.
  best_fit() noexcept = default;

  /// As attach; attached() tells whether the buffer was large enough.
  explicit best_fit(std::span<std::byte> buffer) noexcept { static_cast<void>(attach(buffer)); }

  ~best_fit() { unpoison(tagged_block::at(blocks_.begin()), range_bytes()); }

  best_fit(const best_fit&) = delete;
  best_fit& operator=(const best_fit&) = delete;

  /// Takes the buffer, of any alignment, which must outlive this. False: it is too small for a
  /// block, or there is one already.
  [[nodiscard]] bool attach(std::span<std::byte> buffer) noexcept {
    constexpr std::size_t tag = tagged_block::tag_bytes;
    const std::uintptr_t first = align_up(address_of(buffer.data()) + tag, granule) - tag;
    const std::uintptr_t past = address_of(buffer.data() + buffer.size());
    if (attached() || past < first || past - first < blocks_type::smallest) return false;
    limit_ = first + align_down(past - first, granule);
    open(first);
    return true;
  }

  /// Whether it has memory.
  [[nodiscard]] bool attached() const noexcept { return limit_ != 0; }

  /// Looks for a block of exactly that size, the next larger one, and untouched space at last. A
  /// few instructions where there is one of that size; otherwise O(log n), but see merge::deferred.
  /// Alignments up to that of the plan cost nothing.
  [[nodiscard]] void* allocate(layout l) noexcept {
    if (l.alignment > granule) [[unlikely]]
      return allocate_aligned(l);
    if (has_tiny && l.size <= tiny_request) {
      void* const p = tiny_.allocate(l.size);
      if (p == nullptr) [[unlikely]]
        return allocate_first_of_page(l.size);
      return hand_out(p, tiny_pages::block_bytes, l.size);
    }
    if (l.size > largest_request_in_slots) [[unlikely]]
      return allocate_searching(l.size);
    const std::size_t size = block_size(l.size);
    tagged_block* const b = blocks_.pop(size, size - tagged_block::tag_bytes - l.size);
    if (b == nullptr) [[unlikely]]
      return allocate_searching(l.size);
    return hand_out(b->payload(), size - tagged_block::tag_bytes, l.size);
  }

  /// Null does nothing. O(1) with deferred merging, for blocks of up to 16 KiB; otherwise O(log n).
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) [[unlikely]]
      return;
    if constexpr (checks) check_layout(p, l);
    if (l.size <= tiny_request && is_tiny(p)) {
      release_tiny(p);
    } else {
      release(p);
    }
  }

  /// Frees without a layout. Null does nothing. As many steps as with one.
  void deallocate(void* p) noexcept {
    if (p == nullptr) [[unlikely]]
      return;
    if constexpr (checks) check_block(p);
    if (is_tiny(p)) {
      release_tiny(p);
    } else {
      release(p);
    }
  }

  /// Grows into the free space behind the block, which gives back what it needs no more when it
  /// shrinks. O(log n), with deferred merging for each free block that it grows into.
  [[nodiscard]] bool try_resize(void* p, [[maybe_unused]] layout from, layout to) noexcept {
    if constexpr (checks) check_layout(p, from);
    return is_aligned(p, to.alignment) && resize(p, to.size);
  }

  /// As realloc of C: null allocates; a size of zero frees and returns null; where it fails, with
  /// null, the block is as it was. Copies only what cannot grow in place. The result is aligned as
  /// the plan says.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept {
    if (p == nullptr) return allocate({size, granule});
    if constexpr (checks) check_block(p);
    if (size == 0) {
      deallocate(p);
      return nullptr;
    }
    if (resize(p, size)) return p;
    void* const moved = allocate({size, granule});
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, p, std::min(size, usable_size(p)));
    deallocate(p);
    return moved;
  }

  /// Whether p lies in the part of the range that has blocks, live or free. Safe for any value.
  /// O(1), reads no memory.
  [[nodiscard]] bool owns(const void* p) const noexcept {
    const std::uintptr_t at = address_of(p);
    return at - blocks_.begin() < blocks_.end() - blocks_.begin() || at - tiny_.begin() < limit_ - tiny_.begin();
  }

  /// Bytes that may be used behind p, a live block. Builds that check or poison say what was asked
  /// for.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept {
    return block_guard::asked(p, payload_bytes(p));
  }

  /// Frees everything. O(1), but for the poison.
  void reset() noexcept { open(blocks_.begin()); }

  /// Makes one block of all free neighbours; returns the bytes that became untouched. O(blocks).
  /// With immediate merging there is never anything to do.
  std::size_t defragment() noexcept {
    if (!blocks_.unmerged()) return 0;
    const std::uintptr_t end_before = blocks_.end();
    blocks_.merge_all();
    return end_before - blocks_.end();
  }

  /// Calls f(pointer, usable size) for every live block: blocks in the order of their addresses,
  /// then tiny ones. f must not allocate or free here. O(blocks).
  template <class Visitor>
  void for_each_live(Visitor&& f) const {
    blocks_.for_each([&](tagged_block* b) {
      if (!b->is_free()) f(b->payload(), usable_size(b->payload()));
    });
    tiny_.for_each([&](void* p, bool is_free) {
      if (!is_free) f(p, usable_size(p));
    });
  }

  /// O(blocks).
  [[nodiscard]] best_fit_stats stats() const noexcept {
    const std::size_t untouched = tiny_.begin() - blocks_.end();
    best_fit_stats s{.held = range_bytes(),
                     .in_use = 0,
                     .rounding = 0,
                     .headers = 0,
                     .available = untouched,
                     .largest_free = untouched};
    const auto add_live = [&](const void* p) {
      s.in_use += asked_bytes(p);
      s.rounding += payload_bytes(p) - asked_bytes(p);
    };
    blocks_.for_each([&](tagged_block* b) {
      if (b->is_free()) {
        s.available += b->size();
        s.largest_free = std::max(s.largest_free, b->size());
      } else {
        add_live(b->payload());
      }
    });
    tiny_.for_each([&](const void* p, bool is_free) {
      if (is_free) {
        s.available += tiny_pages::block_bytes;
      } else {
        add_live(p);
      }
    });
    s.headers = s.held - s.in_use - s.rounding - s.available;
    return s;
  }

 private:
  template <class Heap>
  friend struct best_fit_audit;

  static constexpr bool checks = tagged_block::is_checked;
  static constexpr std::size_t granule = Plan.alignment;
  using blocks_type = block_range<granule, Plan.merging>;

  static constexpr bool has_tiny = granule == tiny_pages::block_bytes;
  static constexpr std::size_t tiny_request = tiny_pages::block_bytes - block_guard::bytes;
  // In a small range a page would take much of it for one small block.
  static constexpr std::size_t room_for_a_tiny_page = 8 * tiny_pages::page_bytes;

  static constexpr std::size_t largest_request = std::size_t{1} << 62;  // two of them add up without overflow
  static constexpr std::size_t largest_request_in_slots =
      blocks_type::largest_in_slots - tagged_block::tag_bytes - block_guard::bytes;

  /// Of a block for so many bytes. Precondition: bytes <= largest_request.
  [[nodiscard]] static constexpr std::size_t block_size(std::size_t bytes) noexcept {
    return align_up(std::max(bytes + tagged_block::tag_bytes + block_guard::bytes, blocks_type::smallest), granule);
  }

  [[nodiscard]] std::size_t range_bytes() const noexcept { return limit_ - blocks_.begin(); }

  [[nodiscard]] bool is_tiny(const void* p) const noexcept { return has_tiny && tiny_.contains(p); }

  [[nodiscard]] std::size_t payload_bytes(const void* p) const noexcept {
    return is_tiny(p) ? tiny_pages::block_bytes : tagged_block::of(p)->payload_bytes();
  }

  [[nodiscard]] std::size_t asked_bytes(const void* p) const noexcept {
    if constexpr (block_guard::active) return block_guard::asked(p, payload_bytes(p));
    return is_tiny(p) ? tiny_.asked(p) : tagged_block::of(p)->payload_bytes() - tagged_block::of(p)->slack();
  }

  void open(std::uintptr_t begin) noexcept {
    blocks_.open(begin);
    tiny_.open(limit_);
    poison(tagged_block::at(begin), range_bytes());
  }

  static void* hand_out(void* p, std::size_t payload_bytes, std::size_t asked) noexcept {
    block_guard::set(p, payload_bytes, asked);
    unpoison(p, asked);
    return p;
  }

  [[nodiscard, gnu::noinline]] void* allocate_first_of_page(std::size_t asked) noexcept {
    if (tiny_.begin() - blocks_.end() < room_for_a_tiny_page) return allocate_searching(asked);
    tiny_.add_page();
    return hand_out(tiny_.allocate(asked), tiny_pages::block_bytes, asked);
  }

  [[nodiscard, gnu::noinline]] void* allocate_searching(std::size_t asked) noexcept {
    if (asked > largest_request) return nullptr;
    tagged_block* const b = blocks_.take(block_size(asked), tiny_.begin());
    if (b == nullptr) [[unlikely]]
      return allocate_merged(asked);
    b->set_slack(b->payload_bytes() - asked);
    return hand_out(b->payload(), b->payload_bytes(), asked);
  }

  [[nodiscard, gnu::noinline]] void* allocate_merged(std::size_t asked) noexcept {
    if (!blocks_.unmerged()) return nullptr;
    blocks_.merge_all();
    return allocate_searching(asked);
  }

  [[nodiscard, gnu::noinline]] void* allocate_aligned(layout l) noexcept {
    if (l.size > largest_request || l.alignment > largest_request) return nullptr;
    const std::size_t size = block_size(l.size);
    tagged_block* const b = blocks_.take_aligned(size, l.alignment, tiny_.begin());
    if (b != nullptr) {
      b->set_slack(b->payload_bytes() - l.size);
      return hand_out(b->payload(), b->payload_bytes(), l.size);
    }
    if (!blocks_.unmerged()) return nullptr;
    blocks_.merge_all();
    return allocate_aligned(l);
  }

  void release_tiny(void* p) noexcept {
    if constexpr (checks) freed_.note(p);
    poison(p, tiny_pages::block_bytes);
    tiny_.deallocate(p);
  }

  void release(void* p) noexcept {
    tagged_block* const b = tagged_block::of(p);
    const std::size_t size = b->size();
    if constexpr (checks) freed_.note(p);
    poison(p, size - tagged_block::tag_bytes);
    blocks_.release(b, size);
  }

  [[nodiscard]] bool resize(void* p, std::size_t asked) noexcept {
    if (asked > largest_request) return false;
    const std::size_t before = payload_bytes(p);
    if (is_tiny(p)) {
      if (asked > tiny_request) return false;
      tiny_.set_asked(p, asked);
    } else {
      tagged_block* const b = tagged_block::of(p);
      if (!blocks_.resize(b, block_size(asked), tiny_.begin())) return false;
      b->set_slack(b->payload_bytes() - asked);
    }
    poison(p, before);
    reveal(p, asked);  // not unpoison: what was written there stays
    block_guard::set(p, payload_bytes(p), asked);
    return true;
  }

  // Misuse

  void check_block(const void* p) const noexcept {
    constexpr const char* foreign = "free of a foreign pointer";
    if (address_of(p) - blocks_.begin() >= range_bytes()) die(foreign, p, "(not in the range of this heap)");
    bool is_block, is_free;
    if (tiny_.contains(p)) {
      is_block = tiny_.is_block(p);
      is_free = is_block && tiny_.is_free(p);
    } else {
      // A block that became untouched left its tag there, which says free.
      const bool has_tag = is_aligned(p, granule) && tagged_block::of(p)->is_sealed();
      is_free = has_tag && tagged_block::of(p)->is_free();
      is_block = has_tag && (is_free || owns(p));
    }
    if (!is_block) die(foreign, p, "(not the beginning of a block, or of one freed already)");
    if (is_free) die_of_double_free(p);
    if (!block_guard::intact(p, payload_bytes(p)))
      die("write past the end of a block", p, "(seen when it was freed or resized)");
  }

  [[noreturn, gnu::cold, gnu::noinline]] void die_of_double_free(const void* p) const noexcept {
    say("double free", p, "(the block is free already)");
    if constexpr (checks) {
      if (const call_stack* const first = freed_.find(p)) {
        text<40>().add("  it was freed by\n").write_to(2);
        first->write_to(2);
      }
      text<40>().add("  and is freed again by\n").write_to(2);
      call_stack::here().write_to(2);
    }
    std::abort();
  }

  void check_layout(const void* p, layout l) const noexcept {
    check_block(p);
    if (l.size != usable_size(p) || !is_aligned(p, l.alignment))
      die("free with a wrong layout", p, "(not the one it was allocated with)");
  }

  blocks_type blocks_;
  tiny_pages tiny_;
  std::uintptr_t limit_ = 0;
  struct nothing {};
  [[no_unique_address]] std::conditional_t<checks, recent_frees, nothing> freed_;
};

}  // namespace heapwright
