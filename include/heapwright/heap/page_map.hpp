// From any address to what the heap knows of it: a radix tree of two levels over 48 bits of address
// space.
//
//   root    one pointer per 2 GiB of address space (1 MiB of zero pages, of which a process touches
//           one or two)
//   leaf    for each heap page of those 2 GiB: a tag, four bytes, all that the fast path of free
//           looks at, and the span the page belongs to; where the recipe has mixed spans, the bits
//           of their chunks as well
//
// A tag is (owner << 14) | (size class << 6) for pages cut into blocks and for the page that a
// page-run block begins in, `large_tag` for that of a large block without a class, `mixed_tag` for
// pages of a mixed span, 0 for what is not ours. The owner is the thread that last refilled from
// the span; it decides only the way a freed block takes. Six bits are zero, so that a tag without
// its owner is the offset of the class in a thread cache (class_state.hpp): no shift is needed.
//
// The root holds the address of a leaf's tags minus the index of its first page, so that tags are
// reached by the page number as it is. Leaves live as long as the map; the page heap's lock guards
// their making. Tags and root entries are relaxed atomics: a thread that got a pointer to a block
// got it by some synchronisation, which carries what was written here before.
//
// The root is shorter than 2 MiB on purpose. Linux aligns the mapping of a longer library to 2 MiB.
// Then libc lies elsewhere in the page cache's larger pieces, and a small program has 20 KiB more
// of libc mapped.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include <heapwright/core/check.hpp>
#include <heapwright/heap/figures.hpp>
#include <heapwright/heap/mixed_bits.hpp>
#include <heapwright/heap/span.hpp>
#include <heapwright/platform/concept.hpp>

namespace heapwright {

using page_tag = std::uint32_t;

inline constexpr unsigned class_shift = 6;
inline constexpr unsigned owner_shift = 14;
inline constexpr page_tag class_mask = 0x3FFF;
inline constexpr page_tag large_tag = 0x3FFF;
inline constexpr page_tag mixed_tag = 0x3FFE;
inline constexpr std::uint32_t owners_end = (std::uint32_t{1} << (32 - owner_shift)) - 1;  ///< all ones is nobody

[[nodiscard]] constexpr page_tag tag_of(page_tag owner, unsigned size_class) noexcept {
  return owner | size_class << class_shift;
}
[[nodiscard]] constexpr unsigned class_of(page_tag tag) noexcept { return (tag & class_mask) >> class_shift; }

/// One per heap: what it says of an address is what that heap knows. All zero is empty.
template <platform OS, bool HasMixed>
class page_map {
  friend struct heap_describer;

  static constexpr unsigned address_bits = 48;
  static constexpr unsigned leaf_shift = 31;
  static constexpr std::size_t leaf_pages = std::size_t{1} << (leaf_shift - heap_page_shift);
  static constexpr std::size_t root_entries = std::size_t{1} << (address_bits - leaf_shift);

  using tag_cell = std::atomic<page_tag>;

  struct leaf_without_mixed {
    tag_cell tags[leaf_pages];
    std::atomic<span*> spans[leaf_pages];
  };
  struct leaf_with_mixed : leaf_without_mixed {
    mixed_bits bits[leaf_pages * heap_page / mixed_bits::span_bytes];
  };
  using leaf = std::conditional_t<HasMixed, leaf_with_mixed, leaf_without_mixed>;

  static std::size_t mapped_bytes() noexcept { return align_up(sizeof(leaf), OS::page_size()); }

 public:
  /// What the map takes for each heap page of a span.
  static constexpr std::size_t bytes_per_page = sizeof(leaf) / leaf_pages;

  /// Leaves made ahead, so that nothing fails half way. Not in the map: its root is reached with no
  /// displacement, and is long.
  class spare_leaves {
   public:
    /// Has so many ready. False when the system has no memory.
    [[nodiscard]] bool reserve(std::size_t leaves, heap_figures& figures) noexcept {
      while (count_ < leaves) {
        void* const p = OS::map(mapped_bytes());
        if (p == nullptr) return false;
        OS::advise_sparse(p, mapped_bytes());
        figures.metadata.add(sizeof(leaf));
        figures.page_map.add(sizeof(leaf));
        auto* const fresh = static_cast<ready*>(p);
        if (first_ != nullptr) fresh->next = first_;  // a page that is not written to costs no memory
        first_ = fresh;
        ++count_;
      }
      return true;
    }

    /// One that is all zero; reserve has had it made.
    [[nodiscard]] void* take() noexcept {
      ready* const l = first_;
      first_ = l->next;
      --count_;
      if (first_ != nullptr) l->next = nullptr;
      return l;
    }

    /// Unmaps those that were not taken.
    void unmap_all() noexcept {
      while (count_ > 0) {
        OS::unmap(take(), mapped_bytes());
      }
    }

   private:
    struct ready {
      ready* next;
    };

    ready* first_ = nullptr;
    std::size_t count_ = 0;
  };

  /// The tag of p's page; 0 for every value that is not an address of ours: null, a tagged pointer,
  /// an address of the kernel.
  [[nodiscard, gnu::always_inline]] page_tag tag(const void* p) const noexcept {
    // Masking the index instead would take one instruction for two, but then free would take a wild
    // pointer for a block.
    const std::uintptr_t index = address_of(p) >> leaf_shift;
    if (index >= root_entries) [[unlikely]]
      return 0;
    const std::uintptr_t biased = root_[index].load(std::memory_order_relaxed);
    if (biased == 0) [[unlikely]]
      return 0;
    const auto page = address_of(p) >> heap_page_shift;
    return reinterpret_cast<const tag_cell*>(biased + page * sizeof(tag_cell))->load(std::memory_order_relaxed);
  }

  /// The bits of the mixed span at p, whose page has mixed_tag.
  [[nodiscard]] mixed_bits& bits_at(const void* p) const noexcept {
    const std::uintptr_t index = address_of(p) >> leaf_shift;
    const std::uintptr_t first = root_[index].load(std::memory_order_relaxed) + index * leaf_pages * sizeof(tag_cell);
    constexpr std::uintptr_t in_leaf = (std::uintptr_t{1} << leaf_shift) - 1;
    return reinterpret_cast<leaf_with_mixed*>(first)->bits[(address_of(p) & in_leaf) / mixed_bits::span_bytes];
  }

  /// The span at p's page, or null. May be out of date inside a free run or a large block: ask only
  /// about pages whose tag is set, or which border on a span that the caller holds.
  [[nodiscard]] span* span_at(const void* p) const noexcept {
    leaf* const l = leaf_of(p);
    return l == nullptr ? nullptr : l->spans[page_in_leaf(p)].load(std::memory_order_relaxed);
  }

  /// The span that p lies in, or null. In the middle of a large or a free span the map has nothing,
  /// so pages before p are looked at, up to 2 GiB of them: for messages.
  [[nodiscard, gnu::cold]] const span* span_around(const void* p) const noexcept {
    const leaf* const l = leaf_of(p);
    if (l == nullptr) return nullptr;
    for (std::size_t page = page_in_leaf(p) + 1; page-- > 0;) {
      const span* const s = l->spans[page].load(std::memory_order_relaxed);
      if (s != nullptr) return s->contains(p) ? s : nullptr;
    }
    return nullptr;
  }

  /// Leaves that cover would need for [p, p + bytes), at most; `p` may be null for a range that has
  /// no place yet.
  [[nodiscard]] std::size_t leaves_for(const void* p, std::size_t bytes) const noexcept {
    if (p == nullptr) return divide_up(bytes, std::size_t{1} << leaf_shift) + 1;
    std::size_t missing = 0;
    for (std::uintptr_t i = address_of(p) >> leaf_shift; i <= (address_of(p) + bytes - 1) >> leaf_shift; ++i) {
      missing += i >= root_entries || root_[i].load(std::memory_order_relaxed) == 0;
    }
    return missing;
  }

  /// Makes room for entries of [p, p + bytes); that many leaves are in `spare`.
  void cover(const void* p, std::size_t bytes, spare_leaves& spare) noexcept {
    const std::uintptr_t last = address_of(p) + bytes - 1;
    if (last >> address_bits != 0) die("memory mapped beyond 48 bits of address space", p, "");
    const std::uintptr_t first_page = address_of(p) >> heap_page_shift;
    const std::uintptr_t first = first_page_.load(std::memory_order_relaxed);
    const std::uintptr_t end = end_page_.load(std::memory_order_relaxed);
    first_page_.store(end == 0 ? first_page : std::min(first, first_page), std::memory_order_relaxed);
    end_page_.store(std::max(end, (last >> heap_page_shift) + 1), std::memory_order_relaxed);
    for (std::uintptr_t i = address_of(p) >> leaf_shift; i <= last >> leaf_shift; ++i) {
      if (root_[i].load(std::memory_order_relaxed) != 0) continue;
      root_[i].store(address_of(spare.take()) - i * leaf_pages * sizeof(tag_cell), std::memory_order_release);
    }
  }

  void set_span(const void* p, span* s) noexcept {
    leaf_of(p)->spans[page_in_leaf(p)].store(s, std::memory_order_relaxed);
  }

  void set_ends(span* s) noexcept {
    set_span(s->start, s);
    set_span(s->end() - heap_page, s);
  }

  void clear_ends(span* s) noexcept {
    set_span(s->start, nullptr);
    set_span(s->end() - heap_page, nullptr);
  }

  void set_tag(const void* p, page_tag t) noexcept {
    leaf_of(p)->tags[page_in_leaf(p)].store(t, std::memory_order_relaxed);
  }

  void set_all(span* s, page_tag t) noexcept {
    for (std::byte* page = s->start; page != s->end(); page += heap_page) set_span(page, s);
    set_all_tags(s, t);
  }

  /// Guard pages have none: what has a tag can be read.
  void set_all_tags(span* s, page_tag t) noexcept {
    for (std::byte* page = s->start; page != s->usable_end(); page += heap_page) set_tag(page, t);
  }

  /// Calls f(span&) for each span there is, by address. Looks at every page that has no span
  /// between the lowest and the highest that were ever covered, a millisecond or so for each 2 GiB.
  /// The caller holds the lock of the page heap.
  template <class F>
  void for_each_span(F f) const {
    const std::uintptr_t end = end_page_.load(std::memory_order_relaxed);
    for (std::uintptr_t page = first_page_.load(std::memory_order_relaxed); page < end;) {
      if (root_[page / leaf_pages].load(std::memory_order_relaxed) == 0) {
        page = (page / leaf_pages + 1) * leaf_pages;
        continue;
      }
      auto* const start = reinterpret_cast<std::byte*>(page << heap_page_shift);
      span* const s = span_at(start);
      // What has been unmapped may have left entries behind.
      if (s == nullptr || s->start != start) {
        ++page;
        continue;
      }
      page += s->pages;
      f(*s);
    }
  }

  /// Unmaps all leaves.
  void unmap_all() noexcept {
    for (std::uintptr_t i = 0; i < root_entries; ++i) {
      if (leaf* const l = leaf_of(reinterpret_cast<void*>(i << leaf_shift))) {
        OS::unmap(l, mapped_bytes());
        root_[i].store(0, std::memory_order_relaxed);
      }
    }
    first_page_.store(0, std::memory_order_relaxed);
    end_page_.store(0, std::memory_order_relaxed);
  }

 private:
  leaf* leaf_of(const void* p) const noexcept {
    const std::uintptr_t index = address_of(p) >> leaf_shift;
    if (index >= root_entries) return nullptr;
    const std::uintptr_t biased = root_[index].load(std::memory_order_acquire);
    return biased == 0 ? nullptr : reinterpret_cast<leaf*>(biased + index * leaf_pages * sizeof(tag_cell));
  }

  static std::size_t page_in_leaf(const void* p) noexcept {
    return (address_of(p) >> heap_page_shift) & (leaf_pages - 1);
  }

  std::atomic<std::uintptr_t> root_[root_entries]{};
  std::atomic<std::uintptr_t> first_page_{0}, end_page_{0};  ///< what was ever covered lies between; 0: nothing was
};

/// The page map of a heap.
template <const recipe& R, platform OS>
using page_map_of = page_map<OS, class_table<R>::has_mixed>;

}  // namespace heapwright
