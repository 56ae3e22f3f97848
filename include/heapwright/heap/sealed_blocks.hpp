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
// give_out and take_back have a quick part, for blocks of spans that are as they should be: it goes
// by the seal alone, which nothing but the beginning of a block has. It changes nothing where
// anything is in doubt; the slow part finds the block by its span, and says what is wrong.
//
// Blocks without a class are not looked at when they are given out: their pages were not kept.
//
// A mistake ends the process, or it goes on (misuse_policy): then the block is as the heap knows
// it, whatever the caller says, and what is no live block is left alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <heapwright/core/check.hpp>
#include <heapwright/heap/block_links.hpp>
#include <heapwright/heap/block_seal.hpp>
#include <heapwright/heap/class_state.hpp>
#include <heapwright/heap/misuse.hpp>
#include <heapwright/heap/page_map.hpp>
#include <heapwright/heap/seal_keys.hpp>
#include <heapwright/heap/zero_memory.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class sealed_blocks : zero_memory {
  using classes = class_table<R>;
  using links = block_links<R>;
  static constexpr bool checks_reuse = R.hardening.check_reuse;

 public:
  /// `found`: is set in place of a report, and nothing is changed; null: mistakes are reported.
  sealed_blocks(const page_map_of<R, OS>& map, const seal_keys<OS>& keys, bool* found = nullptr) noexcept
      : map_(map), keys_(keys), seal_(keys.newest()), found_(found) {}

  /// What to ask the heap for, so that there is room for the seal; beyond all limits stays beyond.
  [[nodiscard]] static constexpr std::size_t padded(std::size_t size) noexcept {
    return size > SIZE_MAX - block_seal::bytes ? size : size + block_seal::bytes;
  }

  /// The quick part of give_out, of a block of class c from a free list. False: nothing has
  /// changed, and give_out is to look. So it is with what was never used: anything in the program's
  /// memory may be 0.
  [[nodiscard, gnu::always_inline]] bool give_out_quickly(void* p, unsigned c, std::size_t size, block_origin origin,
                                                          std::size_t alignment) const noexcept {
    auto* const begin = static_cast<std::byte*>(p);
    const std::size_t room = classes::of(c).size - block_seal::bytes;
    const bool is_in_order = !classes::is_page_run(c) && seal_.is_free(begin, room) &&
                             (!checks_reuse || is_zero(begin + sizeof(block), room - sizeof(block)));
    if (!is_in_order) [[unlikely]]
      return false;
    forget_link(begin);
    seal_.write_live(begin, room, size, origin, alignment);
    return true;
  }

  /// A block that the heap has just allocated, for `size` bytes.
  [[gnu::noinline]] void give_out(void* p, std::size_t size, block_origin origin,
                                  std::size_t alignment) const noexcept {
    const place at = find_linked(p);
    if (at.size_class != 0) {
      const seal_state state = read(at).is.state;
      if (state != seal_state::fresh && state != seal_state::free) {
        tell_written(at);
        std::memset(at.begin, 0, at.room);
      }
      if (state == seal_state::free || checks_reuse) forget_link(at.begin);
      // What is fresh from the system is not touched here; where places are random it was looked at
      // before it had a link (check_fresh). Page runs were, when they left the quarantine.
      const bool is_known =
          classes::is_page_run(at.size_class) || (state == seal_state::fresh && map_.span_at(p)->zeroed);
      if (checks_reuse && !is_known && !is_zero(at.begin, at.room)) {
        mistake("write after free", at, "in a free block, found some time after the write");
        std::memset(at.begin, 0, at.room);
      }
    }
    give_out_clean(at, size, origin, alignment);
  }

  /// A block that is fresh from the system, or has just been cleared.
  [[gnu::noinline]] void give_out_clean(void* p, std::size_t size, block_origin origin,
                                        std::size_t alignment) const noexcept {
    give_out_clean(find_linked(p), size, origin, alignment);
  }

  /// A block leaves a quarantine, where nobody wrote to it.
  void check_untouched(const void* p) const noexcept {
    const place at = find_linked(const_cast<void*>(p));
    if (read(at).is.state == seal_state::free && (!checks_reuse || is_zero(at.begin, at.room))) return;
    tell_written(at);
    std::memset(at.begin, 0, at.room);
    seal_.write_free(at.begin, at.room);
  }

  /// As check_untouched, of a block that is in a free list.
  void check_listed(const block* b) const noexcept { check_free(find_linked(const_cast<block*>(b))); }

  /// A span of a page-run class, which becomes a block: it reads as zero from now on, but for what
  /// it has from the block that it was.
  void begin_run(span& s) const noexcept {
    const place at = run_of(s);
    if (s.zeroed) return;
    s.zeroed = true;
    if (!checks_reuse || !seal_.is_free(at.begin, at.room)) {
      std::memset(at.begin, 0, at.room + block_seal::bytes);
    } else if (!is_untouched(at)) {
      tell_written(at);
      std::memset(at.begin, 0, at.room);
    }
  }

  /// A block that was free when its span was empty, in a list that is no more.
  void check_old_link(const std::byte* begin) const noexcept {
    const auto* const b = reinterpret_cast<const block*>(begin);
    if (b->link != 0 && !links::is_whole(b)) [[unlikely]]
      tell_written(find_linked(const_cast<std::byte*>(begin)));
  }

  /// A block of zero memory that was never given out, and that no link was written to. Only its
  /// first page is looked at, and where its seal will be: the program may never touch the others.
  void check_fresh(std::byte* begin, std::size_t room) const noexcept {
    const bool is_begin_written = !is_zero(begin, std::min(room, heap_page));
    if (!is_begin_written && is_zero(begin + room, block_seal::bytes)) [[likely]]
      return;
    const place at = find_linked(begin);
    if (is_begin_written)
      tell("write beyond a block", at, "into the next one, which was never given out: found some time after the write");
    else
      tell("write before a block", behind(at), "into the end of the one before it, which was never given out");
    if (found_ == nullptr) std::memset(at.begin, 0, at.room);
  }

  // --- at the end of the process

  /// All of a span that the program may have written to by mistake: its blocks, live or free, up
  /// to `most` of them; what lies before the first one and behind the last one; and the next one
  /// that was never given out. Of pages that were given back, both ends. Returns the blocks that it
  /// has looked at.
  std::size_t check_span(const span& s, std::size_t most) const noexcept {
    switch (s.state) {
      case span_state::free_decommitted: check_ends(s); return 0;
      case span_state::retired:
        if (s.zeroed) return check_ends(s), 0;
        return s.size_class < classes::cut_end ? check_blocks(s, most) : (check_block(run_of(s), s), 1);
      case span_state::cut:
        if (checks_reuse && s.zeroed && s.carved < s.capacity)
          check_fresh(block_of(s, s.carved).begin, block_of(s, s.carved).room);
        return check_blocks(s, most);
      case span_state::large:
        if (map_.tag(s.start) == 0) return 0;  // freed, and cannot be touched
        check_block(run_of(s), s);
        return 1;
      default: return 0;
    }
  }

  /// The quick part of take_back. Class 0: nothing has changed, and take_back is to look.
  [[nodiscard, gnu::always_inline]] unsigned take_back_quickly(void* p, const block_claim& said) const noexcept {
    const unsigned c = class_quickly(p);
    auto* const begin = static_cast<std::byte*>(p);
    const std::size_t size = classes::of(c).size, room = size - block_seal::bytes;
    // no_slack is more than any.
    if (c == 0 || seal_.slack_if_live(begin, room, said) > most_quick_slack) [[unlikely]]
      return 0;
    if (checks_reuse) clear(begin, size);
    seal_.write_free(begin, room);
    return c;
  }

  /// What take_back returns for what is no live block, and size.
  static constexpr unsigned not_taken = UINT_MAX;
  static constexpr std::size_t not_live = SIZE_MAX;

  /// The block at p is free from now on. Its class; 0: it has none.
  [[gnu::noinline]] unsigned take_back(void* p, const block_claim& said) const noexcept {
    const place at = find(p);
    if (at.begin == nullptr) return not_taken;
    const reading r = read(at);
    if (!is_usable(at, r.is, said)) return not_taken;
    check_beside(at, r, when_freed);
    if (at.size_class != 0 && checks_reuse) std::memset(at.begin, 0, at.room);
    seal_.write_free(at.begin, at.room);
    return at.size_class;
  }

  /// The quick part of size_to_resize and resize.
  struct quick_resize {
    std::size_t had = not_live;  ///< not_live: nothing is known
    bool is_done = false;
  };

  [[nodiscard, gnu::always_inline]] quick_resize resize_quickly(void* p, std::size_t size) const noexcept {
    const unsigned c = class_quickly(p);
    auto* const begin = static_cast<std::byte*>(p);
    const std::size_t room = classes::of(c).size - block_seal::bytes;
    const std::size_t slack = c == 0 ? block_seal::no_slack : seal_.slack_if_live(begin, room, {});
    if (slack > most_quick_slack) [[unlikely]]
      return {};
    const std::size_t had = room - slack;
    const bool stays = size <= room && size >= room / 2;
    if (stays) {
      clear_between(begin, room, had, size);
      seal_.write_live(begin, room, size, block_origin::malloc, 0);
    }
    return {.had = had, .is_done = stays};
  }

  /// What was asked for: of a live block of malloc, which is to be resized.
  [[nodiscard]] std::size_t size_to_resize(void* p) const noexcept {
    const place at = find(p, realloc_names);
    if (at.begin == nullptr) return not_live;
    const reading r = read(at);
    if (!is_usable(at, r.is, {}, realloc_names)) return not_live;
    check_beside(at, r, when_freed);
    return at.room - r.is.slack;
  }

  /// The same, whatever has given the block out.
  [[nodiscard]] std::size_t size_of_live(const void* p) const noexcept {
    const place at = find(const_cast<void*>(p), size_names);
    if (at.begin == nullptr) return 0;
    const seal_reading is = read(at).is;
    return is_usable(at, is, {.origin = is.origin}, size_names) ? at.room - is.slack : 0;
  }

  /// What was asked for; 0 for what is no live block, which is no mistake.
  [[nodiscard]] std::size_t size_if_live(const void* p) const noexcept {
    const place at = locate(const_cast<void*>(p));
    if (at.begin == nullptr) return 0;
    const seal_reading is = read(at).is;
    return is.state == seal_state::live ? at.room - is.slack : 0;
  }

  /// Of a live block.
  void set_origin(void* p, block_origin origin) const noexcept {
    const place at = find(p);
    if (at.begin == nullptr) [[unlikely]]
      return;
    const seal_reading is = read(at).is;
    seal_.write_live(at.begin, at.room, at.room - is.slack, origin, is.alignment());
  }

  /// Whether a block of no bytes, of which this is known, is live and what the caller says. If not,
  /// it is a mistake; true as well where the process goes on, and it is live.
  [[nodiscard]] static bool is_usable_empty(void* p, seal_state state, block_origin origin, const block_claim& said,
                                            const call_names& by) noexcept {
    return is_usable({.begin = static_cast<std::byte*>(p), .room = 0, .size_class = 0, .before = 0},
                     {.state = state, .origin = origin}, said, by);
  }

  /// Makes a live block of `had` bytes one of `size` where it is. False: it has no room, or too
  /// much.
  [[nodiscard]] bool resize(void* p, std::size_t had, std::size_t size, block_origin origin) const noexcept {
    const place at = find(p);
    if (size > at.room || size < at.room / 2 || at.room - size > block_seal::most_slack) return false;
    clear_between(at.begin, at.room, had, size);
    seal_.write_live(at.begin, at.room, size, origin, 0);
    return true;
  }

 private:
  struct place {
    std::byte* begin;
    std::size_t room;     ///< before the seal
    unsigned size_class;  ///< 0: none
    std::size_t before;   ///< bytes of its pages before it; from 8 on the last 8 are its head
  };

  [[nodiscard]] static bool has_head(const place& at) noexcept { return at.before >= block_seal::bytes; }

  /// The class of the block that may begin at p, if it is one for the quick parts; or 0. There is
  /// memory where its seal would be.
  [[nodiscard, gnu::always_inline]] unsigned class_quickly(const void* p) const noexcept {
    const page_tag tag = map_.tag(p);
    const unsigned c = class_of(tag);
    if (tag == 0 || c > last_quick) [[unlikely]]
      return 0;
    const std::size_t size = classes::of(c).size;
    // A pointer into the last block of a span: there may be nothing where its seal would be.
    const bool leaves_page = address_of(p) % heap_page + size > heap_page;
    if (leaves_page && static_cast<const std::byte*>(p) + size > map_.span_at(p)->usable_end()) [[unlikely]]
      return 0;
    return c;
  }

  /// The block that begins at p, a pointer of the program's. None is a mistake, and the result has
  /// no beginning.
  [[nodiscard]] place find(void* p, const call_names& by = free_names) const noexcept {
    const place at = locate(p);
    if (at.begin == nullptr) [[unlikely]]
      note_no_block(p, by);
    return at;
  }

  /// The block that begins at p, as the heap says.
  [[nodiscard]] place find_linked(void* p) const noexcept {
    const place at = locate(p);
    invariant(at.begin != nullptr, "a free list has what is no block");
    return at;
  }

  /// Of a cut span, or one that was: its block number i.
  [[nodiscard]] static place block_of(const span& s, std::size_t i) noexcept {
    const std::size_t size = classes::of(s.size_class).size;
    return {s.block_begin() + i * size, size - block_seal::bytes, s.size_class, 0};
  }

  /// Of a span that is one block, or was: that block.
  [[nodiscard]] static place run_of(const span& s) noexcept {
    const std::size_t bytes = s.size_class == 0 ? s.block_bytes() : classes::of(s.size_class).size;
    return {s.block_begin(), bytes - block_seal::bytes, s.size_class, s.offset};
  }

  /// The block that begins at p; without a beginning: none does.
  [[nodiscard]] place locate(void* p) const noexcept {
    auto* const begin = static_cast<std::byte*>(p);
    const page_tag tag = map_.tag(p);
    if (tag == 0) [[unlikely]]
      return {};
    const span* const s = map_.span_at(p);
    if (s->state == span_state::cut) [[likely]] {
      const unsigned c = class_of(tag);
      const std::size_t offset = address_of(begin) - address_of(s->block_begin());
      if (classes::divisor(c).quotient(offset) < s->capacity) [[likely]]
        return {begin, classes::of(c).size - block_seal::bytes, c, 0};
    } else if (s->block_begin() == begin) {
      return run_of(*s);
    }
    return {};
  }

  [[gnu::cold, gnu::noinline]] void note_no_block(const void* p, const call_names& by) const noexcept {
    if (was_freed(p)) return report_mistake(by.of_freed, p, "(the block is free already)");
    const bool has_tag = map_.tag(p) != 0;
    const span* const s = has_tag ? nullptr : map_.span_around(p);
    if (has_tag || (s != nullptr && s->state == span_state::large && map_.tag(s->start) != 0))
      return report_mistake(by.of_inner, p, "(not the beginning of a block)");
    report_mistake(by.of_foreign, p, "(no block of this heap begins there)");
  }

  /// Whether a block began there whose pages no block has now: a large one that is not used again
  /// yet (page_heap's hides_large), or one of an empty span.
  [[nodiscard]] bool was_freed(const void* p) const noexcept {
    if (map_.tag(p) != 0) return false;
    const span* const s = map_.span_at(p);
    if (s == nullptr) return false;
    if (s->state == span_state::large || s->size_class >= classes::cut_end) return s->block_begin() == p;
    return s->state == span_state::retired &&
           classes::divisor(s->size_class).quotient(address_of(p) - address_of(s->block_begin())) < s->carved;
  }

  struct reading {
    seal_reading is;
    block_seal seal;  ///< with the key that the block was sealed with
  };

  /// By the newest key that it can be read with.
  [[nodiscard]] reading read(const place& at) const noexcept {
    reading r{seal_.read(at.begin, at.room), seal_};
    if (r.is.state != seal_state::broken) [[likely]]
      return r;
    keys_.for_each_older([&](std::uint64_t key) {
      const block_seal older(key);
      if (const seal_reading is = older.read(at.begin, at.room); is.state != seal_state::broken) r = {is, older};
      return r.is.state != seal_state::broken;
    });
    return r;
  }

  void give_out_clean(const place& at, std::size_t size, block_origin origin, std::size_t alignment) const noexcept {
    seal_.write_live(at.begin, at.room, size, origin, alignment);
    if (!has_head(at)) return;
    std::memset(at.begin - at.before, 0, at.before - block_seal::bytes);
    seal_.write_head(at.begin);
  }

  /// It was in a free list.
  static void forget_link(std::byte* begin) noexcept { new (begin) block{0}; }

  /// A block is to have `size` bytes in place of `had`: what is not the program's any more, or was
  /// filled, is 0 from now on.
  static void clear_between(std::byte* begin, std::size_t room, std::size_t had, std::size_t size) noexcept {
    const std::size_t from = checks_reuse ? std::min(had, size) : had;
    std::memset(begin + from, 0, std::min(had + block_seal::most_filled, room) - from);
  }

  // --- whether what the heap has left alone is as it was

  /// Of a live block: its slack behind what is filled, and what stands before it.
  void check_beside(const place& at, const reading& r, const char* when) const noexcept {
    const std::size_t unfilled = r.is.slack > block_seal::most_filled ? r.is.slack - block_seal::most_filled : 0;
    if (checks_reuse && !is_zero_anywhere(at.begin + at.room - unfilled, unfilled)) [[unlikely]]
      tell("write beyond a block", at, when, at.room - r.is.slack);
    if (has_head(at) && !(r.seal.has_head(at.begin) &&
                          is_zero_anywhere(at.begin - at.before, at.before - block_seal::bytes))) [[unlikely]]
      tell("write before a block", at, when, at.room - r.is.slack);
  }

  /// Of a free block, whose seal is.
  [[nodiscard]] static bool is_untouched(const place& at) noexcept {
    if (!checks_reuse) return true;
    const auto* const b = reinterpret_cast<const block*>(at.begin);
    const bool is_in_no_list = b->link == 0;
    return (is_in_no_list || links::is_whole(b)) && is_zero(at.begin + sizeof(block), at.room - sizeof(block));
  }

  void check_free(const place& at) const noexcept {
    const seal_state state = read(at).is.state;
    const bool was_used = state != seal_state::fresh;  // what is fresh may not be zero yet
    if (was_used && !(state == seal_state::free && is_untouched(at))) tell_written(at);
  }

  /// Of a span that has been used, when the process ends.
  void check_block(const place& at, const span& s) const noexcept {
    const reading r = read(at);
    if (r.is.state == seal_state::live) return check_beside(at, r, when_ended);
    const bool is_free = r.is.state == seal_state::free;
    // Where places are not random, a thread may have fresh blocks that it has not given out.
    const bool may_be_fresh = !R.hardening.random_places || s.state != span_state::cut;
    const bool is_in_order = (is_free && is_untouched(at)) || (r.is.state == seal_state::fresh && may_be_fresh);
    if (is_in_order || is_at_work(at, r.is)) return;
    const auto* const b = reinterpret_cast<const block*>(at.begin);
    if (is_free || r.is.state == seal_state::fresh || (b->link != 0 && links::is_whole(b))) return tell_written(at);
    tell("write beyond a block", at, when_ended, r.is.is_known ? at.room - r.is.slack : not_known);
  }

  /// Whether a signal may have interrupted what gives the block out or takes it back, and its
  /// handler ends the process: the block is cleared, in no list, and its seal not yet written; or
  /// the first bytes of its slack are filled.
  [[nodiscard]] static bool is_at_work(const place& at, const seal_reading& is) noexcept {
    if (is.state == seal_state::broken && !is.is_known) return false;
    if (is.state != seal_state::free) return is_zero(at.begin, at.room);
    const std::byte* const end = at.begin + at.room;
    const std::byte* const filled =
        std::find_if(at.begin, at.begin + at.room, [](std::byte b) { return b != std::byte{0}; });
    const auto behind =
        static_cast<std::size_t>(end - filled) - std::min<std::size_t>(end - filled, block_seal::most_filled);
    return filled >= at.begin + sizeof(block) && is_zero_anywhere(end - behind, behind);
  }

  std::size_t check_blocks(const span& s, std::size_t most) const noexcept {
    const std::byte* const end = s.block_begin() + s.capacity * std::size_t{classes::of(s.size_class).size};
    if (!is_zero(s.start, s.offset))
      tell("write before a block", block_of(s, 0), "the first of its span; found when the process ends");
    if (!is_zero(end, static_cast<std::size_t>(s.usable_end() - end)))
      tell("write beyond a block", block_of(s, s.capacity - 1),
           "behind the last one of its span, or before the block that follows; found when the process ends");
    const std::size_t n = std::min<std::size_t>(s.carved, most);
    for (std::size_t i = 0; i < n; ++i) check_block(block_of(s, i), s);
    return n;
  }

  /// Of pages that read as zero.
  void check_ends(const span& s) const noexcept {
    if (!s.zeroed) return;
    std::byte* const end = s.usable_end();
    if (!is_zero(s.start, cache_line))
      tell("write beyond a block", s.start, "(into the free pages behind it; found when the process ends)");
    if (!is_zero(end - cache_line, cache_line))
      tell("write before a block", end, "(into the free pages before it; found when the process ends)");
  }

  [[nodiscard]] static known_block known_of(const seal_reading& is, std::size_t room) noexcept {
    return {.origin = is.origin, .size = room - is.slack, .alignment = is.alignment()};
  }

  /// Whether the block is live, and is what the caller says, or the process goes on.
  [[nodiscard]] static bool is_usable(const place& at, const seal_reading& is, const block_claim& said,
                                      const call_names& by = free_names) noexcept {
    if (is.state != seal_state::live || !known_of(is, at.room).is(said)) [[unlikely]]
      explain(at, is, said, by);
    return is.state == seal_state::live;
  }

  [[gnu::cold, gnu::noinline]] static void explain(const place& at, const seal_reading& is, const block_claim& said,
                                                   const call_names& by) noexcept {
    if (is.state == seal_state::free) return mistake(by.of_freed, at, "the block is free already");
    if (is.state == seal_state::fresh) return mistake(by.of_foreign, at, "the block was never handed out");
    if (is.state == seal_state::broken)
      return mistake("write beyond a block", at, when_freed, is.is_known ? at.room - is.slack : not_known);
    const known_block known = known_of(is, at.room);
    mistake(known.mistake_in(said), at, known.beside(said).c_str());
  }

  /// The next block, of blocks side by side.
  static place behind(place at) noexcept {
    at.begin += at.room + block_seal::bytes;
    return at;
  }

  /// Of a free block that is not as it was left. Its own writer rarely leaves its contents alone:
  /// where these are 0, the seal was reached from the block behind it.
  [[gnu::cold, gnu::noinline]] void tell_written(const place& at) const noexcept {
    const bool is_seal = read(at).is.state != seal_state::free;
    if (is_seal && checks_reuse && is_zero(at.begin + sizeof(block), at.room - sizeof(block))) {
      return tell("write before a block", behind(at), "the end of the free one before it has changed");
    }
    tell("write after free", at,
         is_seal ? "at the end of a free block, or beyond the one before it; found some time after the write"
                 : "in a free block, found some time after the write");
  }

  /// A mistake that was found beside what the caller is about.
  [[gnu::cold, gnu::noinline]] void tell(const char* what, const place& at, const char* detail,
                                         std::size_t asked = not_known) const noexcept {
    if (found_ != nullptr)
      *found_ = true;
    else
      mistake(what, at, detail, asked);
  }

  [[gnu::cold, gnu::noinline]] void tell(const char* what, const void* at, const char* detail) const noexcept {
    if (found_ != nullptr)
      *found_ = true;
    else
      report_mistake(what, at, detail);
  }

  static constexpr std::size_t not_known = SIZE_MAX;
  static constexpr const char* when_freed = "found when it is freed or resized";
  static constexpr const char* when_ended = "found when the process ends";

  /// `asked`: how many bytes the program has asked for.
  [[gnu::cold, gnu::noinline]] static void mistake(const char* what, const place& at, const char* detail,
                                                   std::size_t asked = not_known) noexcept {
    text<300> all;
    all.add("(").add(detail).add("; a block ");
    if (at.size_class != 0) all.add("of class ").add(std::uint64_t{at.size_class}).add(", ");
    all.add(at.room == 0 ? "of " : "with room for ").add(std::uint64_t{at.room});
    all.add(at.room == 0 ? " bytes" : " bytes and its seal");
    if (asked != not_known) all.add("; ").add(std::uint64_t{asked}).add(" were asked for");
    report_mistake(what, at.begin, all.add(")").c_str());
  }

  /// The last class that take_back_quickly takes. Longer blocks are worth a call of memset, and a
  /// function that calls nothing saves no registers.
  static constexpr unsigned last_quick = std::min(classes::cut_end - 1, classes::index(1024));

  /// The quick parts leave blocks with more slack to the slow ones.
  static constexpr std::size_t most_quick_slack = checks_reuse ? block_seal::most_filled : block_seal::most_slack;

  const page_map_of<R, OS>& map_;
  const seal_keys<OS>& keys_;
  block_seal seal_;  ///< with the newest key
  bool* found_;
};

}  // namespace heapwright
