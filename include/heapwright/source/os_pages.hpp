// Memory straight from the operating system, in whole pages: the source at the bottom of
// everything. Stateless; thread-safe. Blocks are zeroed. Complexity: one system call (two more for
// alignments above a page).
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/platform/concept.hpp>

namespace heapwright {

/// Memory of the operating system, zeroed, in whole pages. Stateless; thread-safe.
template <platform OS>
class os_pages {
 public:
  /// Bytes that a request of this size really takes; 0 on overflow.
  [[nodiscard]] static std::size_t rounded(std::size_t size) noexcept {
    const std::size_t bytes = align_up(size, OS::page_size());
    return bytes < size ? 0 : bytes;
  }

  /// Null when the system has no memory or the request overflows. A size of zero is refused too.
  [[nodiscard]] void* allocate(layout l) noexcept {
    const std::size_t bytes = rounded(l.size);
    if (bytes == 0) return nullptr;
    if (l.alignment <= OS::page_size()) return OS::map(bytes);
    return map_aligned(bytes, l.alignment);
  }

  /// `p` came from allocate(l). Null does nothing.
  void deallocate(void* p, layout l) noexcept {
    if (p != nullptr) OS::unmap(p, rounded(l.size));
  }

  /// Locks the pages that [p, p + bytes) lies in: they are in memory at once, and are not swapped
  /// out. `p` need not come from here: any memory of the process will do. Locks do not nest, and a
  /// forked child does not inherit them. False: the system refused (RLIMIT_MEMLOCK), nothing
  /// changed. Complexity: one system call, and a page fault for each page that was not in memory.
  [[nodiscard]] static bool lock(const void* p, std::size_t bytes) noexcept {
    const page_range pages = pages_of(p, bytes);
    return pages.is_valid && (pages.bytes == 0 || OS::lock_pages(pages.first, pages.bytes));
  }

  /// Unlocks the pages that [p, p + bytes) lies in, locked or not, also where other data lie in
  /// them. False: the system refused (it has no more mappings), nothing changed.
  [[nodiscard]] static bool unlock(const void* p, std::size_t bytes) noexcept {
    const page_range pages = pages_of(p, bytes);
    return pages.is_valid && (pages.bytes == 0 || OS::unlock_pages(pages.first, pages.bytes));
  }

 private:
  struct page_range {
    bool is_valid;  ///< false: it ends beyond the address space
    void* first;
    std::size_t bytes;
  };

  static page_range pages_of(const void* p, std::size_t bytes) noexcept {
    if (bytes == 0) return {true, nullptr, 0};
    const std::uintptr_t first = align_down(address_of(p), OS::page_size());
    const std::size_t before = address_of(p) - first;
    const std::size_t whole = bytes > SIZE_MAX - before ? 0 : rounded(before + bytes);
    return {whole != 0 && first <= UINTPTR_MAX - whole, reinterpret_cast<void*>(first), whole};
  }

  static void* map_aligned(std::size_t bytes, std::size_t alignment) noexcept {
    const std::size_t slack = alignment - OS::page_size();
    if (bytes > SIZE_MAX - slack) return nullptr;
    auto* const raw = static_cast<std::byte*>(OS::map(bytes + slack));
    if (raw == nullptr) return nullptr;
    const std::size_t before = align_up(address_of(raw), alignment) - address_of(raw);
    if (before > 0) OS::unmap(raw, before);
    if (slack > before) OS::unmap(raw + before + bytes, slack - before);
    return raw + before;
  }
};

}  // namespace heapwright
