// Each block in pages of its own, between two that cannot be touched: an overflow faults where it
// happens.
//
//   [ guard page | rest | block | guard page ]
//
// The rest is less than a page. The end of the block touches the guard, if its alignment lets it.
//
// Invariant: the block begins in the first page after the guard, so that the pages are found from
// the pointer and the layout alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/platform/concept.hpp>
#include <heapwright/source/os_pages.hpp>

namespace heapwright {

/// For finding errors. Blocks of any layout, zeroed. What is touched behind a block faults, from
/// less than `alignment` bytes (and less than a page) behind its end on; so does what lies a page
/// in front of it, and a freed block until the system hands its addresses out again. Null when the
/// system has no memory or no more mappings: a block takes three, and Linux gives a process 65530
/// unless it is told otherwise. Stateless; thread-safe. Complexity: three system calls (up to three
/// more for alignments above a page), one to free.
template <platform OS>
class guard_pages {
 public:
  /// Zeroed. Null when the system has no memory or no more mappings.
  [[nodiscard]] void* allocate(layout l) noexcept {
    const std::size_t page = OS::page_size();
    const std::size_t body = body_of(l.size);
    // The first byte of the body is to be a multiple of an alignment above a page: so much lies in
    // front of it.
    const std::size_t before = std::max(page, l.alignment);
    if (body == 0 || body > SIZE_MAX - before - page) return nullptr;
    const std::size_t total = before + body + page;
    auto* const raw = static_cast<std::byte*>(pages_.allocate({total, before}));
    if (raw == nullptr) return nullptr;
    if (before > page) OS::unmap(raw, before - page);
    std::byte* const first = raw + before;
    if (!OS::protect(first - page, page) || !OS::protect(first + body, page)) {
      OS::unmap(first - page, body + 2 * page);
      return nullptr;
    }
    return first + align_down(body - at_least_one(l.size), std::min(l.alignment, page));
  }

  /// `p` came from allocate(l). Its pages are unmapped: touching them is a fault. Null does
  /// nothing.
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) return;
    const std::size_t page = OS::page_size();
    OS::unmap(reinterpret_cast<void*>(align_down(address_of(p), page) - page), body_of(l.size) + 2 * page);
  }

 private:
  /// Bytes of the pages between the guards; 0 on overflow.
  [[nodiscard]] static std::size_t body_of(std::size_t size) noexcept {
    return os_pages<OS>::rounded(at_least_one(size));
  }

  // A block without bytes has its pages too, and must lie in them.
  [[nodiscard]] static std::size_t at_least_one(std::size_t size) noexcept { return std::max<std::size_t>(size, 1); }

  [[no_unique_address]] os_pages<OS> pages_;
};

}  // namespace heapwright
