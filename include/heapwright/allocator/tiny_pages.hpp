// Blocks of 16 bytes without headers: at the upper end of the best-fit heap's range, in pages that
// grow downwards.
//
//   [ blocks of the heap ... | untouched ... | page | page | page ]
//                                            ^--- begin          ^--- end
//   page: [ free bits | next | prev | bytes asked for, of each block | 58 blocks | 8 bytes spare ]
//
// A page is full (not listed), partial (listed), or empty (listed); empty pages at begin go back to
// the untouched space at once. Invariants: bit i of a page is set exactly if its block i is free; a
// page is listed exactly if it has a bit set; prev of the first page in the list means nothing; the
// page at begin is never empty between two calls.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <heapwright/allocator/tagged_block.hpp>
#include <heapwright/core/bits.hpp>
#include <heapwright/core/poison.hpp>

namespace heapwright {

class tiny_pages {
 public:
  static constexpr std::size_t block_bytes = 16;
  static constexpr std::size_t page_bytes = 1 * KiB;

  /// Begins without a page. Precondition: end is 8 less than a multiple of 16.
  void open(std::uintptr_t end) noexcept {
    begin_ = end_ = end;
    listed_ = nullptr;
  }

  /// For `asked` bytes. Null: no page has a free block; add_page may help. O(1).
  [[nodiscard]] void* allocate(std::size_t asked) noexcept {
    page* const p = listed_;
    if (p == nullptr) [[unlikely]]
      return nullptr;
    const std::uint64_t free = p->free;
    const std::uint64_t rest = free & (free - 1);
    p->free = rest;
    if (rest == 0) [[unlikely]]
      listed_ = p->next;
    const auto i = static_cast<unsigned>(std::countr_zero(free));
    p->set_asked(i, asked);
    return p->block(i);
  }

  /// O(1), but that a page which becomes empty at begin takes the empty ones behind it along, each
  /// once.
  void deallocate(void* block) noexcept {
    page* const p = page_of(block);
    const std::uint64_t before = p->free;
    const std::uint64_t free = before | std::uint64_t{1} << p->index(block);
    p->free = free;
    if (before == 0) list(p);
    if (free == page::all && address_of(p) == begin_) [[unlikely]]
      drop_empty_pages();
  }

  /// Takes the page below begin, which must be unused. O(1).
  void add_page() noexcept {
    begin_ -= page_bytes;
    page* const p = page_at(begin_);
    p->free = page::all;
    list(p);
  }

  /// Where the untouched space ends.
  [[nodiscard]] std::uintptr_t begin() const noexcept { return begin_; }

  /// For pointers into the heap's range.
  [[nodiscard]] bool contains(const void* p) const noexcept { return address_of(p) >= begin_; }

  /// Whether p, which is contained, is where a block begins.
  [[nodiscard]] bool is_block(const void* p) const noexcept {
    const std::size_t offset = address_of(p) - address_of(page_of(p)) - sizeof(page);
    return offset < page::blocks * block_bytes && offset % block_bytes == 0;
  }

  /// Precondition: is_block(p).
  [[nodiscard]] bool is_free(const void* p) const noexcept {
    const page* const in = page_of(p);
    return (in->free >> in->index(p) & 1) != 0;
  }

  /// Bytes that a live block was asked for.
  [[nodiscard]] std::size_t asked(const void* p) const noexcept {
    const page* const in = page_of(p);
    return in->asked(in->index(p));
  }

  void set_asked(void* p, std::size_t bytes) noexcept {
    page* const in = page_of(p);
    in->set_asked(in->index(p), bytes);
  }

  /// Calls f(block, is_free) for every block. O(pages).
  template <class Visitor>
  void for_each(Visitor&& f) const {
    for (std::uintptr_t at = begin_; at != end_; at += page_bytes) {
      page* const p = page_at(at);
      const std::uint64_t free = p->free;
      for (unsigned i = 0; i < page::blocks; ++i) f(p->block(i), (free >> i & 1) != 0);
    }
  }

 private:
  template <class Heap>
  friend struct best_fit_audit;

  struct page {
    static constexpr unsigned blocks = 58;
    static constexpr std::uint64_t all = (std::uint64_t{1} << blocks) - 1;

    hidden<std::uint64_t> free;
    hidden<page*> next;
    hidden<page*> prev;
    std::uint8_t asked_for[64];

    [[nodiscard]] std::size_t asked(unsigned i) const noexcept {
      reveal(const_cast<std::uint8_t*>(asked_for), sizeof asked_for);
      const std::size_t bytes = asked_for[i];
      poison(const_cast<std::uint8_t*>(asked_for), sizeof asked_for);
      return bytes;
    }

    void set_asked(unsigned i, std::size_t bytes) noexcept {
      reveal(asked_for, sizeof asked_for);
      asked_for[i] = static_cast<std::uint8_t>(bytes);
      poison(asked_for, sizeof asked_for);
    }

    [[nodiscard]] void* block(unsigned i) noexcept { return reinterpret_cast<std::byte*>(this + 1) + i * block_bytes; }
    [[nodiscard]] unsigned index(const void* p) const noexcept {
      return static_cast<unsigned>((address_of(p) - address_of(this + 1)) / block_bytes);
    }
  };
  static_assert(sizeof(page) % block_bytes == tagged_block::tag_bytes,
                "blocks are aligned where pages begin as tags do");
  static_assert(sizeof(page) + page::blocks * block_bytes <= page_bytes && page::blocks <= 64);

  static page* page_at(std::uintptr_t address) noexcept { return reinterpret_cast<page*>(address); }

  [[nodiscard]] page* page_of(const void* p) const noexcept {
    return page_at(end_ - align_up(end_ - address_of(p), page_bytes));
  }

  void list(page* p) noexcept {
    p->next = listed_;
    if (listed_ != nullptr) listed_->prev = p;
    listed_ = p;
  }

  [[gnu::noinline]] void drop_empty_pages() noexcept {
    for (; begin_ != end_ && page_at(begin_)->free == page::all; begin_ += page_bytes) {
      page* const p = page_at(begin_);
      page* const next = p->next;
      if (p == listed_) {
        listed_ = next;
      } else {
        p->prev->next = next;
        if (next != nullptr) next->prev = p->prev;
      }
    }
  }

  page* listed_ = nullptr;
  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
};

}  // namespace heapwright
