// Memory in pages of 2 MiB: fewer misses of the TLB, for memory that is used densely; and an
// account of what the system really gave.
//
// A range is of the first kind that the system has:
//   reserved      pages that the administrator set aside (nr_hugepages); huge for certain
//   transparent   ordinary memory that the system has promised to back by huge pages, if it finds
//                 any when touched
//   normal        ordinary memory: the system does not do huge pages, or not for us
// Invariant: held is the sum of rounded sizes of the ranges that are out.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/platform/concept.hpp>
#include <heapwright/source/os_pages.hpp>

namespace heapwright {

/// Bytes. What is out now, and what was handed out since the start by kind; in_use and held are the
/// same, as a source cuts nothing.
struct huge_page_stats {
  std::size_t in_use;       ///< out now
  std::size_t held;         ///< out now
  std::size_t reserved;     ///< handed out so far in pages that the administrator has set aside
  std::size_t transparent;  ///< handed out so far in memory that the system has promised to back by huge pages
  std::size_t normal;       ///< handed out so far in ordinary pages
};

/// Ranges of whole pages of 2 MiB, aligned to that at least, zeroed. Null when the system has no
/// memory of any kind or the request overflows; a size of zero is refused too. Thread-safe. Neither
/// copied nor moved: share it as `upstream<huge_pages<OS>>`. Complexity: up to nine system calls.
template <platform OS>
class huge_pages {
 public:
  /// Bytes of a huge page.
  static constexpr std::size_t page_size = 2 * MiB;

  /// Takes nothing from the system.
  huge_pages() = default;
  huge_pages(const huge_pages&) = delete;
  huge_pages& operator=(const huge_pages&) = delete;

  /// Zeroed, of whole pages of 2 MiB. Null when the system has none, or for a size of zero.
  [[nodiscard]] void* allocate(layout l) noexcept {
    const std::size_t bytes = rounded(l.size);
    if (bytes == 0) return nullptr;
    std::atomic<std::size_t>* kind = &reserved_;
    // Reserved pages are too few to map more of them than needed for the sake of an alignment.
    void* p = l.alignment <= page_size ? OS::map_huge(bytes) : nullptr;
    if (p == nullptr) {
      p = os_pages<OS>{}.allocate({bytes, std::max(l.alignment, page_size)});
      if (p == nullptr) return nullptr;
      kind = OS::advise_huge(p, bytes) ? &transparent_ : &normal_;
    }
    kind->fetch_add(bytes, std::memory_order_relaxed);
    held_.fetch_add(bytes, std::memory_order_relaxed);
    return p;
  }

  /// `p` came from allocate(l). Null does nothing.
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) return;
    OS::unmap(p, rounded(l.size));
    held_.fetch_sub(rounded(l.size), std::memory_order_relaxed);
  }

  /// Each number is right by itself; while other threads allocate, they may be of different
  /// moments.
  [[nodiscard]] huge_page_stats stats() const noexcept {
    const std::size_t held = held_.load(std::memory_order_relaxed);
    return {.in_use = held,
            .held = held,
            .reserved = reserved_.load(std::memory_order_relaxed),
            .transparent = transparent_.load(std::memory_order_relaxed),
            .normal = normal_.load(std::memory_order_relaxed)};
  }

 private:
  /// 0 on overflow.
  [[nodiscard]] static std::size_t rounded(std::size_t size) noexcept {
    const std::size_t bytes = align_up(size, page_size);
    return bytes < size ? 0 : bytes;
  }

  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> reserved_{0};
  std::atomic<std::size_t> transparent_{0};
  std::atomic<std::size_t> normal_{0};
};

}  // namespace heapwright
