// Blocks of no bytes of a malloc whose blocks have seals: they lie where nothing can be touched, so
// that a read or a write through one is a fault at once.
//
//   one range of address space, made with the first of them: places side by side
//   records apart from it: two bytes for each place
//
// States of a place   fresh  never given out
//                     live   with the program
//                     free   given back
//
// A place that was given back is used again when each other one has been, or is live: a stale
// pointer stays one for long. Where each place is live, or there is no memory, the heap gives out a
// block with bytes.
//
// Invariant  no place is in memory, and the page map knows none of the range. The lock guards the
//            records. No mistake is reported while it is held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heapwright/heap/page_heap.hpp>
#include <heapwright/heap/sealed_blocks.hpp>
#include <heapwright/sync/lock.hpp>

namespace heapwright {

/// All zero has no range yet.
template <const recipe& R, platform OS>
class empty_blocks {
  friend struct heap_describer;

  using sealed = sealed_blocks<R, OS>;
  using lock_type = heap_lock<R, OS>;

 public:
  /// Aligned to 16. Null: each place is live, or there is no memory.
  [[nodiscard, gnu::noinline, gnu::cold]] void* allocate(block_origin origin, page_heap<R, OS>& pages) noexcept {
    holding guard(lock_);
    if (!has_range(pages) || live_ == places) return nullptr;
    while (records_[next_].state == seal_state::live) next_ = (next_ + 1) % places;
    const std::size_t place = next_;
    next_ = (next_ + 1) % places;
    records_[place] = {seal_state::live, origin};
    ++live_;
    return begin() + place * place_bytes;
  }

  /// Whether p lies in the range. It may be any pointer.
  [[nodiscard]] bool contains(const void* p) const noexcept {
    return begin() != nullptr && address_of(p) - address_of(begin()) < bytes;
  }

  /// Of a pointer into the range, which realloc is told: whether it is a live block. If not, or if
  /// it is not of malloc, it is a mistake.
  [[nodiscard]] bool check_to_resize(void* p) noexcept { return is_usable(p, {}, realloc_names); }

  /// As check_to_resize, for malloc_usable_size, which takes blocks of each origin.
  void check_to_measure(void* p) noexcept { (void)is_usable(p, {.origin = read(p).origin}, size_names); }

  /// Of a pointer into the range: the block is free from now on. A mistake where it is no live
  /// block, or not what is said.
  void take_back(void* p, const block_claim& said) noexcept {
    if (is_freed_as(p, said)) return;
    const block_origin origin = read(p).origin;
    if (is_usable(p, said, free_names)) (void)is_freed_as(p, {.origin = origin});
  }

  /// Of a live block.
  void set_origin(const void* p, block_origin origin) noexcept {
    holding guard(lock_);
    records_[place_of(p)].origin = origin;
  }

  [[nodiscard]] lock_type& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::size_t place_bytes = default_alignment, places = 1 << 16, bytes = places * place_bytes;

  struct record {
    seal_state state;
    block_origin origin;
  };

  [[nodiscard]] std::byte* begin() const noexcept { return begin_.load(std::memory_order_acquire); }

  [[nodiscard]] std::size_t place_of(const void* p) const noexcept {
    return (address_of(p) - address_of(begin())) / place_bytes;
  }

  [[nodiscard]] record read(const void* p) noexcept {
    holding guard(lock_);
    return of(p);
  }

  [[nodiscard]] bool is_usable(void* p, const block_claim& said, const call_names& by) noexcept {
    if (!is_aligned(p, place_bytes)) return report_mistake(by.of_inner, p, "(not the beginning of a block)"), false;
    const record r = read(p);
    return sealed::is_usable_empty(p, r.state, r.origin, said, by);
  }

  /// The block is free now. False: it is no live one, or not what is said, and is as it was.
  [[nodiscard]] bool is_freed_as(const void* p, const block_claim& said) noexcept {
    holding guard(lock_);
    const record r = of(p);
    if (r.state != seal_state::live || !known_block{.origin = r.origin, .size = 0, .alignment = 0}.is(said))
      return false;
    records_[place_of(p)].state = seal_state::free;
    --live_;
    return true;
  }

  /// What is known of the block at p; of a pointer into a place, as of one that was never given
  /// out.
  [[nodiscard]] record of(const void* p) const noexcept {
    const record r = records_[place_of(p)];
    const bool is_known = is_aligned(p, place_bytes) && r.state != seal_state::broken;
    return is_known ? r : record{seal_state::fresh, block_origin::malloc};
  }

  [[nodiscard]] bool has_range(page_heap<R, OS>& pages) noexcept {
    if (begin() != nullptr) return true;
    if (pages.is_callers()) return false;
    if (records_ == nullptr) records_ = static_cast<record*>(pages.allocate_metadata(places * sizeof(record)));
    if (records_ == nullptr) return false;
    void* const range = OS::map(bytes);
    if (range == nullptr) return false;
    if (!OS::protect(range, bytes)) return OS::unmap(range, bytes), false;
    begin_.store(static_cast<std::byte*>(range), std::memory_order_release);
    return true;
  }

  lock_type lock_;
  std::atomic<std::byte*> begin_{nullptr};
  record* records_ = nullptr;  ///< zero, which is `broken`: never given out
  std::size_t next_ = 0;       ///< where to look for a place first
  std::size_t live_ = 0;
};

}  // namespace heapwright
