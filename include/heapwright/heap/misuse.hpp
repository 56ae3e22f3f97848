// What checked builds know of a block, to name the caller's mistake: double free, a pointer into a
// block, a wrong size. In release builds everything here is empty, unless the recipe asks for it.
//
// A free block carries a mark in its second word: its address, scrambled. Freeing a block that
// carries its mark is a double free. A live block that holds exactly this value there would be
// reported too; by chance that is one in 2^64.
#pragma once

#include <cstdint>

#include <heapwright/core/check.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/heap/page_map.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class misuse {
  using classes = class_table<R>;

 public:
  /// Where blocks have seals, these know more.
  static constexpr bool checks = (checks_callers || R.hardening.check_callers) && !R.hardening.sealed;

  static void note_allocated(block* b) noexcept {
    if constexpr (checks) mark_of(b) = 0;
  }

  static void note_freed([[maybe_unused]] block* b, [[maybe_unused]] const page_map_of<R, OS>& map) noexcept {
    if constexpr (checks) {
      check_beginning(b, map, "free of a pointer into a block");
      if (mark_of(b) == expected_mark(b)) die("double free", b, "(the block is free already)");
      mark_of(b) = expected_mark(b);
    }
  }

  /// A block that was never handed out counts as free.
  static void note_fresh([[maybe_unused]] block* b) noexcept {
    if constexpr (checks) mark_of(b) = expected_mark(b);
  }

  /// Before a block is resized: a block of a class.
  static void check_live([[maybe_unused]] void* p, [[maybe_unused]] const page_map_of<R, OS>& map) noexcept {
    if constexpr (checks) {
      auto* const b = static_cast<block*>(p);
      check_beginning(b, map, "free of a pointer into a block");
      if (mark_of(b) == expected_mark(b)) die("double free", b, "(the block is free already, and is to be resized)");
    }
  }

  /// A pointer that the page map does not know.
  static void note_foreign(void* p) noexcept {
    if constexpr (checks)
      die("free of a foreign pointer", p,
          "(not the beginning of a block of this heap, or of a large one freed already)");
  }

  /// A pointer into a mixed span, at which no block of the program begins.
  static void note_no_block(void* p) noexcept {
    if constexpr (checks) die("free of a pointer into a block", p, "(not its beginning, or free already)");
  }

  /// The caller says how large the block is; `usable` is what it has.
  static void check_size(void* p, std::size_t size, std::size_t usable) noexcept {
    if constexpr (checks) {
      if (size > usable) die("free with a wrong size", p, "(larger than the block)");
    }
  }

 private:
  struct free_block {
    block* next;
    std::uintptr_t mark;
  };

 public:
  /// Of a free block, from its beginning.
  static constexpr std::size_t own_bytes = sizeof(free_block);
  static_assert(own_bytes <= size_class_plan::smallest_step);

 private:
  // The analyser does not know that address 0 has no size class, so that free(nullptr) never comes
  // here.
  // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn)
  static void check_beginning(const block* b, const page_map_of<R, OS>& map, const char* what) noexcept {
    const span* const s = map.span_at(b);
    if (s->state == span_state::mixed) return;  // the bits have been asked
    const std::size_t offset = address_of(b) - address_of(s->block_begin());
    if (address_of(b) < address_of(s->block_begin()) ||
        offset % (s->state == span_state::large ? s->bytes() : classes::of(s->size_class).size) != 0)
      die(what, b, "(not its beginning)");
  }

  static std::uintptr_t& mark_of(block* b) noexcept { return reinterpret_cast<free_block*>(b)->mark; }

  static std::uintptr_t expected_mark(const block* b) noexcept {
    return fibonacci_hash(address_of(b)) ^ 0xF4EE'B10C'F4EE'B10CU;
  }
};

}  // namespace heapwright
