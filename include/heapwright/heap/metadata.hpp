// Memory for the heap's own records, apart from the blocks. Grows by system pages and never shrinks; records of one kind
// are kept in a free list by whoever uses that kind. The caller holds the lock that guards it.
#pragma once

#include <cstddef>

#include <heapwright/core/layout.hpp>
#include <heapwright/heap/figures.hpp>
#include <heapwright/source/os_pages.hpp>

namespace heapwright {

template <platform OS>
class metadata_memory {
 public:
  /// `bytes` of zeroed memory aligned to a cache line; null when the system has none.
  [[nodiscard]] void* allocate(std::size_t bytes, heap_figures& figures) noexcept {
    bytes = align_up(bytes, cache_line);
    if (bytes > left_ && !grow(bytes, figures)) return nullptr;
    void* const p = next_;
    next_ += bytes;
    left_ -= bytes;
    return p;
  }

 private:
  static constexpr std::size_t step = 64 * KiB;

  bool grow(std::size_t bytes, heap_figures& figures) noexcept {
    const std::size_t mapped = os_pages<OS>::rounded(bytes > step ? bytes : step);
    void* const fresh = OS::map(mapped);
    if (fresh == nullptr) return false;
    next_ = static_cast<std::byte*>(fresh);
    left_ = mapped;
    figures.metadata.fetch_add(mapped, std::memory_order_relaxed);
    return true;
  }

  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace heapwright
