// What is known of a block, to name the caller's mistake: double free, a pointer into a block, a
// wrong size.
//
// Each free is looked at in checked builds, and where the recipe asks for it. In all others the
// slow steps look at what comes their way, as that costs the fast path nothing: remote frees, and a
// list of freed blocks that goes back to its spans.
//
// A free block carries a mark in its second word: its address, scrambled. Freeing a block that
// carries its mark is a double free. A live block that holds exactly this value there would be
// reported too; by chance that is one in 2^64.
#pragma once

#include <cstdint>

#include <heapwright/core/check.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/heap/block_links.hpp>
#include <heapwright/heap/page_map.hpp>

namespace heapwright {

/// What a call with a pointer that is no live block is called in a message.
struct call_names {
  const char* of_foreign;
  const char* of_inner;
  const char* of_freed;
};
inline constexpr call_names free_names{"free of a foreign pointer", "free of a pointer into a block", "double free"};
inline constexpr call_names realloc_names{"realloc of a foreign pointer", "realloc of a pointer into a block",
                                          "double free"};
inline constexpr call_names size_names{"malloc_usable_size of a foreign pointer",
                                       "malloc_usable_size of a pointer into a block",
                                       "malloc_usable_size of a freed block"};

/// A pointer that the page map does not know.
inline void report_foreign(const void* p, const call_names& by) noexcept {
  report_mistake(by.of_foreign, p, "(not the beginning of a block of this heap, or of a large one freed already)");
}

template <const recipe& R, platform OS>
class misuse {
  using classes = class_table<R>;

 public:
  /// Where blocks have seals, these know more.
  static constexpr bool checks = (checks_callers || R.hardening.check_callers) && !R.hardening.sealed;

  /// Whether slow steps look at what no check has seen before.
  static constexpr bool looks_in_slow_steps = !checks && !R.hardening.sealed;

  static void note_allocated(block* b) noexcept {
    if constexpr (checks) mark_of(b) = 0;
  }

  /// False: it is none that can be freed, and the process goes on.
  [[nodiscard]] static bool note_freed([[maybe_unused]] block* b,
                                       [[maybe_unused]] const page_map_of<R, OS>& map) noexcept {
    if constexpr (checks) {
      if (!is_beginning(b, map))
        return report_mistake("free of a pointer into a block", b, "(not its beginning)"), false;
      if (mark_of(b) == expected_mark(b)) return report_mistake("double free", b, "(the block is free already)"), false;
      mark_of(b) = expected_mark(b);
    }
    return true;
  }

  /// A block that was never handed out counts as free.
  static void note_fresh([[maybe_unused]] block* b) noexcept {
    if constexpr (checks) mark_of(b) = expected_mark(b);
  }

  /// Whether a freed block, which goes back to its span, is one that the span has given out. The
  /// caller holds the lock of the span.
  [[nodiscard]] static bool was_given_out([[maybe_unused]] const block* b, [[maybe_unused]] const span& s) noexcept {
    if constexpr (looks_in_slow_steps) return number_in(s, b) < s.carved;
    return true;
  }

  /// A freed block of a page-run class goes back.
  static void check_run([[maybe_unused]] const block* b, [[maybe_unused]] const span& s) noexcept {
    if constexpr (looks_in_slow_steps) {
      if (address_of(b) != address_of(s.block_begin())) [[unlikely]]
        die("free of a pointer into a block", b, "(found at its free or some time later)");
    }
  }

  /// Another thread's block, and the one that this thread has freed before it. False: it is the
  /// same one, and the process goes on.
  [[nodiscard]] static bool is_not_last_freed([[maybe_unused]] const block* b,
                                              [[maybe_unused]] const block* before) noexcept {
    if constexpr (looks_in_slow_steps) {
      if (b == before) [[unlikely]]
        return report_mistake("double free", b, "(the block is free already)"), false;
    }
    return true;
  }

  /// What follows a list of freed blocks that has been counted: nothing, unless one is in it twice.
  static void check_is_end([[maybe_unused]] const block* b) noexcept {
    if constexpr (looks_in_slow_steps) {
      if (b != nullptr) [[unlikely]]
        die("double free", b, "(the block is in a list of freed blocks twice)");
    }
  }

  /// The program has written to the link of a free block, at its beginning: there is no going on
  /// without it.
  [[noreturn, gnu::cold, gnu::noinline]] static void die_of_link(const block* b,
                                                                 const page_map_of<R, OS>& map) noexcept {
    const unsigned c = class_of(map.tag(b));
    die("write after free", b,
        text<200>()
            .add("(at the beginning of a free block, or beyond the one before it; found some time after the write; a "
                 "block of class ")
            .add(std::uint64_t{c})
            .add(", of ")
            .add(std::uint64_t{classes::of(c).size})
            .add(" bytes)")
            .c_str());
  }

  /// Before a block is resized: a block of a class. False: it cannot be, and the process goes on.
  [[nodiscard]] static bool is_live([[maybe_unused]] void* p, [[maybe_unused]] const page_map_of<R, OS>& map) noexcept {
    if constexpr (checks) {
      auto* const b = static_cast<block*>(p);
      if (!is_beginning(b, map))
        return report_mistake("realloc of a pointer into a block", b, "(not its beginning)"), false;
      if (mark_of(b) == expected_mark(b))
        return report_mistake("double free", b, "(the block is free already, and is to be resized)"), false;
    }
    return true;
  }

  /// A pointer that the page map does not know. False: nothing was said of it.
  static bool note_foreign(void* p, const call_names& by) noexcept {
    if constexpr (checks) report_foreign(p, by);
    return checks;
  }

  /// A pointer into a block. True: it has been told.
  static bool note_within(void* p, const call_names& by) noexcept {
    report_mistake(by.of_inner, p, "(not its beginning)");
    return true;
  }

  /// A pointer into a mixed span, at which no block of the program begins. False: nothing was
  /// said of it.
  static bool note_no_block(void* p) noexcept {
    if constexpr (checks) report_mistake("free of a pointer into a block", p, "(not its beginning, or free already)");
    return checks;
  }

  /// The caller says how large the block is; `usable` is what it has.
  static void check_size(void* p, std::size_t size, std::size_t usable) noexcept {
    if constexpr (checks) {
      if (size > usable) report_mistake("free with a wrong size", p, "(larger than the block)");
    }
  }

 private:
  struct free_block {
    std::uintptr_t link;
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
  [[nodiscard]] static bool is_beginning(const block* b, const page_map_of<R, OS>& map) noexcept {
    const span* const s = map.span_at(b);
    if (s->state == span_state::large) return address_of(b) == address_of(s->block_begin());
    return s->state == span_state::mixed || number_in(*s, b) < s->capacity;  // of a mixed one the bits have been asked
  }

  /// Which block of a cut span begins there; more than all if none does.
  static std::uint64_t number_in(const span& s, const block* b) noexcept {
    return classes::divisor(s.size_class).quotient(address_of(b) - address_of(s.block_begin()));
  }

  static std::uintptr_t& mark_of(block* b) noexcept { return reinterpret_cast<free_block*>(b)->mark; }

  static std::uintptr_t expected_mark(const block* b) noexcept {
    return fibonacci_hash(address_of(b)) ^ 0xF4EE'B10C'F4EE'B10CU;
  }
};

}  // namespace heapwright
