// From any address to what the heap knows of it: a radix tree of two levels over 48 bits of address space.
//
//   root    one pointer per GiB of address space (2 MiB of zero pages, of which a process touches one or two)
//   leaf    for each heap page of that GiB: a tag, four bytes, all that the fast path of free looks at,
//           and the span the page belongs to
//
// A tag is (owner << 8) | size class for pages cut into blocks, `large_tag` for the first page of a large block, 0 for
// what is not ours. An owner is the thread that last drew from the span; it decides only the way a freed block takes.
//
// The root holds the address of a leaf's tags minus the index of its first page, so that tags are reached by the page number
// as it is. Leaves are never freed. Tags and root entries are relaxed atomics: whoever got a pointer to a block got it
// by some synchronisation, which carries what was written here before.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/check.hpp>
#include <heapwright/heap/span.hpp>
#include <heapwright/platform/concept.hpp>

namespace heapwright {

using page_tag = std::uint32_t;

inline constexpr unsigned owner_shift = 8;
inline constexpr page_tag class_mask = 0xFF;
inline constexpr page_tag large_tag = 0xFF;
inline constexpr page_tag first_owner = page_tag{1} << owner_shift;

/// One per process: several heaps share it, so that an address has one answer.
template <platform OS>
class page_map {
  static constexpr unsigned address_bits = 48;
  static constexpr unsigned leaf_shift = 30;
  static constexpr std::size_t leaf_pages = std::size_t{1} << (leaf_shift - heap_page_shift);
  static constexpr std::size_t root_entries = std::size_t{1} << (address_bits - leaf_shift);

  using tag_cell = std::atomic<page_tag>;

  struct leaf {
    tag_cell tags[leaf_pages];
    std::atomic<span*> spans[leaf_pages];
  };

 public:
  static constexpr std::size_t leaf_bytes = sizeof(leaf);

  /// The tag of p's page; 0 for null and everything that is not ours. Precondition: p < 2^48.
  [[nodiscard]] static page_tag tag(const void* p) noexcept {
    const std::uintptr_t biased = root_[address_of(p) >> leaf_shift].load(std::memory_order_relaxed);
    if (biased == 0) [[unlikely]]
      return 0;
    const auto page = address_of(p) >> heap_page_shift;
    return reinterpret_cast<const tag_cell*>(biased + page * sizeof(tag_cell))->load(std::memory_order_relaxed);
  }

  /// Like tag, for any 64-bit value.
  [[nodiscard]] static page_tag tag_of_anything(const void* p) noexcept {
    return address_of(p) >> address_bits == 0 ? tag(p) : 0;
  }

  /// The span at p's page, or null. May be out of date inside a free run or a large block: ask only about pages whose tag is
  /// set, or which border on a span that the caller holds.
  [[nodiscard]] static span* span_at(const void* p) noexcept {
    leaf* const l = leaf_of(p);
    return l == nullptr ? nullptr : l->spans[page_in_leaf(p)].load(std::memory_order_relaxed);
  }

  /// Makes room for entries of [p, p + bytes). False when the system has no memory for them.
  [[nodiscard]] static bool cover(const void* p, std::size_t bytes, std::atomic<std::uint64_t>& metadata) noexcept {
    const std::uintptr_t last = address_of(p) + bytes - 1;
    if (last >> address_bits != 0) return false;
    for (std::uintptr_t i = address_of(p) >> leaf_shift; i <= last >> leaf_shift; ++i) {
      if (root_[i].load(std::memory_order_relaxed) != 0) continue;
      void* const fresh = OS::map(align_up(sizeof(leaf), OS::page_size()));
      if (fresh == nullptr) return false;
      std::uintptr_t expected = 0;
      if (root_[i].compare_exchange_strong(expected, bias(fresh, i), std::memory_order_release)) {
        metadata.fetch_add(sizeof(leaf), std::memory_order_relaxed);
      } else {
        OS::unmap(fresh, align_up(sizeof(leaf), OS::page_size()));
      }
    }
    return true;
  }

  static void set_span(const void* p, span* s) noexcept {
    leaf_of(p)->spans[page_in_leaf(p)].store(s, std::memory_order_relaxed);
  }

  static void set_ends(span* s) noexcept {
    set_span(s->start, s);
    set_span(s->end() - heap_page, s);
  }

  static void clear_ends(span* s) noexcept {
    set_span(s->start, nullptr);
    set_span(s->end() - heap_page, nullptr);
  }

  static void set_tag(const void* p, page_tag t) noexcept {
    leaf_of(p)->tags[page_in_leaf(p)].store(t, std::memory_order_relaxed);
  }

  static void set_all(span* s, page_tag t) noexcept {
    for (std::byte* page = s->start; page != s->end(); page += heap_page) {
      set_tag(page, t);
      set_span(page, s);
    }
  }

  static void set_all_tags(span* s, page_tag t) noexcept {
    for (std::byte* page = s->start; page != s->end(); page += heap_page) set_tag(page, t);
  }

 private:
  static std::uintptr_t bias(void* fresh, std::uintptr_t index) noexcept {
    return address_of(fresh) - index * leaf_pages * sizeof(tag_cell);
  }

  static leaf* leaf_of(const void* p) noexcept {
    const std::uintptr_t index = address_of(p) >> leaf_shift;
    if (index >= root_entries) return nullptr;
    const std::uintptr_t biased = root_[index].load(std::memory_order_acquire);
    return biased == 0 ? nullptr : reinterpret_cast<leaf*>(biased + index * leaf_pages * sizeof(tag_cell));
  }

  static std::size_t page_in_leaf(const void* p) noexcept {
    return (address_of(p) >> heap_page_shift) & (leaf_pages - 1);
  }

  static constinit inline std::atomic<std::uintptr_t> root_[root_entries]{};
};

}  // namespace heapwright
