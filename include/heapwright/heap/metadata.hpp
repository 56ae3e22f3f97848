// Memory for the heap's own records, apart from the blocks. Grows by system pages, and goes back as
// a whole; records of one kind are kept in a free list by the part that uses that kind. The caller
// holds the lock that guards it.
#pragma once

#include <cstddef>
#include <new>

#include <heapwright/core/layout.hpp>
#include <heapwright/heap/figures.hpp>
#include <heapwright/source/os_pages.hpp>

namespace heapwright {

/// IsGuarded: on both sides of each mapping is a page that cannot be touched, where the system
/// allows it.
template <platform OS, bool IsGuarded>
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

  /// Unmaps all of it.
  void unmap_all() noexcept {
    while (newest_ != nullptr) {
      const chunk old = *newest_;
      OS::unmap(reinterpret_cast<std::byte*>(newest_) - guard_bytes(), old.bytes);
      newest_ = old.before;
    }
  }

 private:
  static constexpr std::size_t step = 64 * KiB;

  [[nodiscard]] static std::size_t guard_bytes() noexcept { return IsGuarded ? OS::page_size() : 0; }

  /// At the beginning of each mapping, behind its guard page.
  struct alignas(cache_line) chunk {
    chunk* before;
    std::size_t bytes;
  };

  bool grow(std::size_t bytes, heap_figures& figures) noexcept {
    bytes += sizeof(chunk);
    const std::size_t usable = os_pages<OS>::rounded(bytes > step ? bytes : step);
    const std::size_t mapped = usable + 2 * guard_bytes();
    auto* const first = static_cast<std::byte*>(OS::map(mapped));
    if (first == nullptr) return false;
    std::byte* const fresh = first + guard_bytes();
    if constexpr (IsGuarded) {
      (void)OS::protect(first, guard_bytes());
      (void)OS::protect(fresh + usable, guard_bytes());
    }
    newest_ = new (fresh) chunk{newest_, mapped};
    next_ = fresh + sizeof(chunk);
    left_ = usable - sizeof(chunk);
    figures.metadata.add(mapped);
    return true;
  }

  chunk* newest_ = nullptr;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace heapwright
