// Gives blocks out with a seal (block_seal.hpp) and takes them back, where recipe.hardening.sealed
// says so: what a program does wrong with a block ends it here, by name.
//
//   give_out    a block that the heap has allocated ── its seal is fresh or free
//                                                   ── with check_reuse: all of it is 0
//                                                   ── live
//   take_back   a pointer of the program ── is the beginning of a block
//                                        ── whose seal is live, and says what the caller says
//                                        ── with check_reuse: cleared ── free
//   resize      where it is, if it has room
//
// Blocks without a class are not looked at when they are given out: their pages were not kept.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <heapwright/core/check.hpp>
#include <heapwright/core/exact_divisor.hpp>
#include <heapwright/heap/block_seal.hpp>
#include <heapwright/heap/page_map.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class sealed_blocks {
  using classes = class_table<R>;
  static constexpr bool checks_reuse = R.hardening.check_reuse;

 public:
  sealed_blocks(const page_map_of<R, OS>& map, std::uint64_t key) noexcept : map_(map), seal_(key) {}

  /// What to ask the heap for, so that there is room for the seal; beyond all limits stays beyond.
  [[nodiscard]] static constexpr std::size_t padded(std::size_t size) noexcept {
    return size > SIZE_MAX - block_seal::bytes ? size : size + block_seal::bytes;
  }

  /// A block that the heap has just allocated, for `size` bytes.
  void give_out(void* p, std::size_t size, block_origin origin, std::size_t alignment) const noexcept {
    const place at = find(p, "write after free");
    if (at.size_class != 0) {
      std::memset(at.begin, 0, sizeof(block));  // the link of the free list that it was in
      const seal_state state = seal_.read(at.begin, at.room).state;
      if (state != seal_state::fresh && state != seal_state::free)
        mistake("write after free", at, "at the end of a free block, or beyond the one before it");
      if (checks_reuse && !is_zero(at.begin, at.room)) mistake("write after free", at, "in a free block");
    }
    seal_.write_live(at.begin, at.room, size, origin, alignment);
    if (at.has_head) seal_.write_head(at.begin);
  }

  /// A block leaves a quarantine, where nobody wrote to it.
  void check_untouched(void* p) const noexcept {
    const place at = find(p, "write after free");
    if (seal_.read(at.begin, at.room).state != seal_state::free || (checks_reuse && !is_zero(at.begin, at.room)))
      mistake("write after free", at, "in a free block");
  }

  /// The block at p is free from now on. Its class; 0: it has none.
  unsigned take_back(void* p, const block_claim& said) const noexcept {
    const place at = find(p);
    check(at, seal_.read(at.begin, at.room), said);
    if (at.has_head && !seal_.has_head(at.begin)) mistake("write before a block", at, "found when it is freed");
    if (at.size_class != 0 && checks_reuse) std::memset(at.begin, 0, at.room);
    seal_.write_free(at.begin, at.room);
    return at.size_class;
  }

  /// What was asked for: of a live block.
  [[nodiscard]] std::size_t size(void* p, const block_claim& said) const noexcept {
    const place at = find(p);
    const seal_reading is = seal_.read(at.begin, at.room);
    check(at, is, said);
    return at.room - is.slack;
  }

  /// The same, whatever has given the block out.
  [[nodiscard]] std::size_t size_of_live(const void* p) const noexcept {
    const place at = find(const_cast<void*>(p));
    const seal_reading is = seal_.read(at.begin, at.room);
    check(at, is, {.origin = is.origin});
    return at.room - is.slack;
  }

  /// Of a live block.
  void set_origin(void* p, block_origin origin) const noexcept {
    const place at = find(p);
    const seal_reading is = seal_.read(at.begin, at.room);
    check(at, is, {.origin = is.origin});
    seal_.write_live(at.begin, at.room, at.room - is.slack, origin, is.alignment());
  }

  /// Makes a live block one of `size` bytes where it is. False: it has no room, or too much.
  [[nodiscard]] bool resize(void* p, std::size_t size, block_origin origin) const noexcept {
    const place at = find(p);
    if (size > at.room || size < at.room / 2 || at.room - size > block_seal::most_slack) return false;
    seal_.write_live(at.begin, at.room, size, origin, 0);
    return true;
  }

 private:
  struct place {
    std::byte* begin;
    std::size_t room;     ///< before the seal
    unsigned size_class;  ///< 0: none
    bool has_head;        ///< the word before it has a mark
  };

  static constexpr std::array<exact_divisor, classes::cut_end> divisors = [] {
    auto of = []<std::size_t... C>(std::index_sequence<C...>) {
      return std::array{exact_divisor(C == 0 ? 16 : classes::of(C).size)...};
    };
    return of(std::make_index_sequence<classes::cut_end>());
  }();

  /// The block that begins at p, or the end of the program: p is the program's, or was a link in
  /// free memory, and the message begins with `link_is` then.
  [[nodiscard]] place find(void* p, const char* link_is = nullptr) const noexcept {
    auto* const begin = static_cast<std::byte*>(p);
    const page_tag tag = map_.tag(p);
    if (tag == 0) [[unlikely]]
      die(link_is != nullptr ? link_is : "free of a foreign pointer", p,
          "(not the beginning of a block of this heap, or of a large one freed already)");
    const span* const s = map_.span_at(p);
    if (s->state == span_state::cut) [[likely]] {
      const unsigned c = class_of(tag);
      const std::size_t offset = address_of(begin) - address_of(s->block_begin());
      if (divisors[c].quotient(offset) < s->capacity) [[likely]]
        return {begin, classes::of(c).size - block_seal::bytes, c, false};
    } else if (s->block_begin() == begin) {
      const bool has_head = s->offset >= block_seal::bytes;
      if (tag == large_tag) return {begin, s->block_bytes() - block_seal::bytes, 0, has_head};
      return {begin, classes::of(class_of(tag)).size - block_seal::bytes, class_of(tag), has_head};
    }
    die(link_is != nullptr ? link_is : "free of a pointer into a block", p, "(not the beginning of a block)");
  }

  static void check(const place& at, const seal_reading& is, const block_claim& said) noexcept {
    const std::size_t size = at.room - is.slack;
    if (is.state == seal_state::live && is.origin == said.origin &&
        (said.size == block_claim::not_said || said.size == size) &&
        (said.alignment == block_claim::not_said || said.alignment == is.alignment())) [[likely]]
      return;
    explain(at, is, said);
  }

  [[noreturn, gnu::cold, gnu::noinline]] static void explain(const place& at, const seal_reading& is,
                                                             const block_claim& said) noexcept {
    if (is.state == seal_state::free) mistake("double free", at, "the block is free already");
    if (is.state == seal_state::fresh) mistake("free of a foreign pointer", at, "the block was never handed out");
    if (is.state == seal_state::broken) mistake("write beyond a block", at, "found when it is freed");
    text<200> detail;
    detail.add(std::uint64_t{at.room - is.slack}).add(" bytes, allocated by ").add(name_of(is.origin));
    if (is.origin != said.origin) {
      detail.add(", freed by ").add(name_to_free(said.origin));
      mistake("free with the wrong function", at, detail.c_str());
    }
    if (said.size != block_claim::not_said && said.size != at.room - is.slack) {
      detail.add(", freed with a size of ").add(std::uint64_t{said.size});
      mistake("free with a wrong size", at, detail.c_str());
    }
    detail.add(" with an alignment of ").add(std::uint64_t{is.alignment()});
    detail.add(", freed with one of ").add(std::uint64_t{said.alignment}).add(" (0: none)");
    mistake("free with a wrong alignment", at, detail.c_str());
  }

  [[noreturn, gnu::cold, gnu::noinline]] static void mistake(const char* what, const place& at,
                                                             const char* detail) noexcept {
    text<300> all;
    all.add("(").add(detail).add("; a block of ");
    if (at.size_class != 0) all.add("class ").add(std::uint64_t{at.size_class}).add(", ");
    all.add(std::uint64_t{at.room}).add(" bytes and its seal)");
    die(what, at.begin, all.c_str());
  }

  static const char* name_of(block_origin o) noexcept {
    return o == block_origin::malloc ? "malloc" : o == block_origin::new_object ? "new" : "new[]";
  }
  static const char* name_to_free(block_origin o) noexcept {
    return o == block_origin::malloc ? "free" : o == block_origin::new_object ? "delete" : "delete[]";
  }

  /// Words at a time: `bytes` is a multiple of 8, and p is aligned to it.
  static bool is_zero(const std::byte* p, std::size_t bytes) noexcept {
    std::uint64_t words[4], any = 0;
    for (; bytes >= sizeof words; bytes -= sizeof words, p += sizeof words) {
      std::memcpy(words, p, sizeof words);
      any |= words[0] | words[1] | words[2] | words[3];
    }
    for (; bytes > 0; bytes -= sizeof words[0], p += sizeof words[0]) {
      std::memcpy(words, p, sizeof words[0]);
      any |= words[0];
    }
    return any == 0;
  }

  const page_map_of<R, OS>& map_;
  block_seal seal_;
};

}  // namespace heapwright
