// Where slabs come from unless the program says otherwise: the first few from a reserve in the
// program's own data, the others from malloc.
//
// A slab is aligned to its size, and a malloc that is asked for such a block cuts it out of one
// twice as long: the page in front of it and the page behind it are written to for the malloc's
// notes. So a program's first slabs cost it more page faults than they save.
// - The reserve takes no memory until it is used, no system call and no search. It is shared by all
//   threads and never goes back.
// - Ranges are shorter than their alignment by what malloc writes in front of a block
//   (`header_bytes`). So malloc can lay the next slab directly behind this one, its notes in this
//   one's last bytes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/poison.hpp>
#include <heapwright/source/process_malloc.hpp>

namespace heapwright {

/// Thread-safe. Null when malloc has no memory.
class slab_memory {
 public:
  /// Who asks for a range of 2^n bytes less this, aligned to 2^n, gets ranges that lie side by
  /// side.
  static constexpr std::size_t header_bytes = 16;

  /// From the reserve if the layout is that of its ranges, otherwise from malloc. Null when malloc
  /// has no memory.
  [[nodiscard]] void* allocate(layout l) noexcept {
    if (void* const p = take(l); p != nullptr) return p;
    return detail::malloc_aligned(std::max(l.alignment, default_alignment), l.size);
  }

  /// `p` came from allocate. Null does nothing.
  void deallocate(void* p, layout) noexcept {
    if (!put_back(p)) detail::free_aligned(p);
  }

  friend bool operator==(slab_memory, slab_memory) noexcept { return true; }

 private:
  static constexpr std::size_t range = 16 * KiB;
  static constexpr unsigned ranges = 4;

  /// Null when all ranges of the reserve are taken, or are not what is asked for.
  [[nodiscard]] static void* take(layout l) noexcept {
    // Under AddressSanitizer and Valgrind malloc's memory is watched after it has gone back.
    if (poisons || l.alignment != range || l.size > range) return nullptr;
    for (unsigned i = 0; i < ranges; ++i) {
      if ((free_.fetch_and(~(1U << i), std::memory_order_acquire) & 1U << i) != 0) return first() + i * range;
    }
    return nullptr;
  }

  /// False: it is not from the reserve.
  [[nodiscard]] static bool put_back(const void* p) noexcept {
    const std::size_t offset = address_of(p) - address_of(first());
    if (offset >= ranges * range) return false;
    free_.fetch_or(1U << offset / range, std::memory_order_release);
    return true;
  }

  /// Loaders of old systems align no data to more than a page.
  [[nodiscard]] static std::byte* first() noexcept { return memory_ + (0 - address_of(memory_)) % range; }

  /// A bit for each range. Not zero, so it is among the program's initialised data, in a page that
  /// is there already.
  static constinit inline std::atomic<unsigned> free_{(1U << ranges) - 1};
  static constinit inline std::byte memory_[(ranges + 1) * range]{};
};

static_assert(allocator<slab_memory>);

}  // namespace heapwright
