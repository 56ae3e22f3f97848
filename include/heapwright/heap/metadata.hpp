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

  /// Unmaps all of it.
  void unmap_all() noexcept {
    while (newest_ != nullptr) {
      const chunk old = *newest_;
      OS::unmap(newest_, old.bytes);
      newest_ = old.before;
    }
  }

 private:
  static constexpr std::size_t step = 64 * KiB;

  /// At the beginning of each mapping.
  struct alignas(cache_line) chunk {
    chunk* before;
    std::size_t bytes;
  };

  bool grow(std::size_t bytes, heap_figures& figures) noexcept {
    bytes += sizeof(chunk);
    const std::size_t mapped = os_pages<OS>::rounded(bytes > step ? bytes : step);
    void* const fresh = OS::map(mapped);
    if (fresh == nullptr) return false;
    newest_ = new (fresh) chunk{newest_, mapped};
    next_ = static_cast<std::byte*>(fresh) + sizeof(chunk);
    left_ = mapped - sizeof(chunk);
    figures.metadata.add(mapped);
    return true;
  }

  chunk* newest_ = nullptr;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace heapwright
