// A recipe describes a thread-caching heap completely. It is data, known when the heap is compiled,
// with a default for everything:
//
//   inline constexpr heapwright::recipe app = {.thread_cache = {.share_bytes = 256 * KiB}};
//   heapwright::heap<app> heap;
//
// Templates take a recipe by reference: a compiler, a debugger and a profile then call the heap
// heap<app>, and not by all values of the recipe.
//
// What can be wrong with one is said by the static_asserts in class_table.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/size_classes.hpp>

namespace heapwright {

/// How many pages a span has: the fewest that satisfy all three.
struct span_length {
  std::size_t min_bytes;          ///< of the span, at least
  std::size_t min_blocks;         ///< in the span, at least
  std::size_t max_waste_divisor;  ///< 16: at most 1/16 of a span is unused behind its last block

  /// Whether the divisor and the count of blocks are not zero.
  [[nodiscard]] constexpr bool is_valid() const noexcept { return min_blocks >= 1 && max_waste_divisor >= 1; }
};

/// A class's spans grow with it. Those of a class in light use are short: they come free sooner,
/// for other classes. Those of one in heavy use are long, and fewer: each costs some hundred
/// instructions. Small blocks are in heavy use in most programs.
struct span_plan {
  std::size_t largest_cut = 32 * KiB;  ///< the last class cut from spans, a power of two; longer ones are pages
  std::size_t small = 128;             ///< blocks up to here are small
  span_length first_of_small{16 * KiB, 4, 16};  ///< the shortest span of a class of small blocks
  span_length first{4 * KiB, 4, 8};             ///< the shortest span of other classes
  std::size_t growth_divisor = 16;  ///< a span is about 1/16 of what its class has in use, between the first length ...
  span_length last{32 * KiB, 8, 16};        ///< ... and this one
  std::size_t kept_empty = 16 * KiB;        ///< of a class's spans, so much may stay whose blocks have all come back
  std::size_t worth_scavenging = 64 * KiB;  ///< by so much the spans of a sparse class have more free than used
  /// Blocks of the classes from `mixed_from` up to here share spans, best fit, and free neighbours
  /// merge: less memory where a program frees at random, and asks for other sizes then; to free
  /// such a block takes some nanoseconds more. 0: each class has spans of its own.
  std::size_t mixed_up_to = 0;
  std::size_t mixed_from = 0;  ///< the first size that mixed spans have
};

/// A thread's cache of freed blocks. Limits start small and grow while the thread keeps running
/// into them; once those of a kind together have reached the thread's share, at the cost of others.
/// Short blocks have one share. Long ones have another that grows with the program, as they are
/// fewer, and dear to get; they are kept only where they are seen to be asked for again.
struct thread_cache_plan {
  /// Kept per class at first, beyond the share; less than 8 KiB. The classes of longer blocks are
  /// long: none of them is kept at first.
  std::size_t first_bytes = 2 * KiB;
  std::size_t share_bytes = 1 * MiB;           ///< of short blocks, and the least of long ones
  std::size_t long_divisor = 4;                ///< of long ones: a quarter of what is in use, divided by threads, ...
  std::size_t max_long_bytes = 32 * MiB;       ///< ... up to this
  std::size_t max_blocks_per_class = 2048;     ///< kept per class
  std::size_t max_bytes_per_class = 64 * KiB;  ///< kept per class of short blocks
  std::size_t max_bytes_per_long = 1 * MiB;    ///< kept per class of long blocks
  std::size_t max_parked_bytes = 128 * KiB;    ///< the limits of a cache that is parked have grown by at most this
  std::size_t max_parked = 8;                  ///< caches that are parked at most
  bool fixed = false;                          ///< limits are the greatest from the start
  /// Remote frees are kept like the thread's own blocks and do not go home: less to do where
  /// threads pass blocks on. But then blocks of two threads may lie in one cache line, which both
  /// write to.
  bool keep_remote = false;
  std::size_t batch_bytes = 8 * KiB;  ///< a transfer batch: moved at once ...
  std::size_t max_batch = 64;         ///< ... but no more blocks than this
};

/// When free pages go back to the system.
enum class give_back_policy : std::uint8_t {
  over_time,  ///< what was not needed for a window of time; and at once what is beyond max_free_resident and beyond what is in use
  at_once,    ///< what is beyond max_free_resident
  when_asked  ///< nothing, until somebody calls trim (malloc_trim)
};

/// Pages of 2 MiB.
enum class huge_page_use : std::uint8_t {
  none,         ///< as the system decides
  transparent,  ///< asks for pages of 2 MiB wherever they can be had
  reserved      ///< takes those that the administrator has set aside, and then as transparent
};

/// Pages between the heap and the operating system.
struct page_plan {
  std::size_t growth = 1 * MiB;         ///< least address space asked for at once
  std::size_t max_growth = 64 * MiB;    ///< a heap of n bytes asks for n / 8, up to this
  std::uint64_t purge_window_ms = 400;  ///< pages that stayed free this long are given back
  std::size_t max_free_resident =
      64 * MiB;                       ///< free memory beyond this and beyond what is in use is given back at once
  std::size_t headroom_divisor = 32;  ///< in memory may be 1/32 more than was ever in use at once
  std::size_t unmap_from = 1 * MiB;   ///< runs this long are unmapped, shorter ones keep their address space
  give_back_policy give_back = give_back_policy::over_time;  ///< when free pages go back
  huge_page_use huge = huge_page_use::none;                  ///< whether pages of 2 MiB are asked for
  bool prefault = false;             ///< pages are touched as they are had from the system, `growth` bytes at a time
  bool locked = false;               ///< pages are locked in memory, as far as the system's quota goes
  int numa_node = -1;                ///< pages come from this node; -1: from where the system chooses
  bool coalesce = true;              ///< free runs are merged with their neighbours
  std::uint64_t limit = UINT64_MAX;  ///< bytes in memory for blocks, free ones included; beyond it there is no memory
};

/// What a program's mistakes meet with.
struct hardening_plan {
  bool zero_freed = false;  ///< what was in a block is overwritten when it is freed
  /// Double free, a foreign pointer and a pointer into a block end the program with a message, as
  /// in checked builds.
  bool check_callers = false;
  /// Before each block that is too long for any class is a page that cannot be touched, and one
  /// behind it, where the block ends: who writes beyond it is stopped by the system. A block that
  /// is aligned to more than a page, or that the system has moved for realloc, has the one behind
  /// it alone. Costs four system calls per block, and realloc always copies, where blocks are not
  /// sealed. Not in memory that is the caller's.
  bool guard_large = false;
  /// Each block is 8 bytes longer and has a seal at its end (block_seal.hpp). A write beyond what
  /// was asked for, a double free, a wrong size or alignment, and free for new or delete for new[]
  /// end the program with a message when the block is freed. The block's size is what was asked
  /// for. Not with spans.mixed_up_to. For a malloc.
  bool sealed = false;
  /// A freed block is cleared, and a block that is handed out again is looked at: a write after
  /// free ends the program, and nothing that a block had can be read. Needs `sealed`.
  bool check_reuse = false;
  /// So many bytes of each size class that a thread has freed are held back, 16 blocks at most, and
  /// are handed out again in random order. Needs `sealed`.
  std::uint32_t quarantine_bytes = 0;
  /// Blocks that were never used are handed out in random order, some 32 at a time, and pages are
  /// taken from the beginning or the end of free runs at random. Behind one span of four, chosen at
  /// random, is a page that cannot be touched, and so on both sides of the heap's records, but for
  /// the page map. Costs a system call for each such span.
  bool random_places = false;
  /// Pages that blocks of one size class had never have blocks of another: an old pointer leads to
  /// a block of its own class at most. An empty span stays with its class; its memory goes back to
  /// the system as that of free runs does, its address space does not. Blocks that are too long for
  /// any class have the pages of such blocks alone; those go back where the system has no other
  /// address space. Needs `guard_large`. Not with spans.mixed_up_to. Costs address space as of each
  /// class's own peak, and realloc of such blocks never lets the system move pages.
  bool separate_classes = false;
};

/// Somebody who may know what to do when there is no memory. An object with static storage: GCC 12
/// takes no function in a recipe.
struct out_of_memory_handler {
  /// For a request of so many bytes, with no lock held, so that it may free blocks, also of this
  /// heap. True: worth another try.
  bool (*ask)(std::size_t bytes) noexcept;
};

/// Who may call a heap. A malloc is always thread_caching; the others are for heaps of one's own.
enum class concurrency_mode : std::uint8_t {
  thread_caching,  ///< any thread, each with a cache of its own
  central,  ///< any thread, one at a time: slower, and nothing is kept for each thread; for heaps of one's own, not for a malloc
  single_threaded  ///< one thread at a time, and the program sees to it: no locks, no atomic read-modify-writes; not for a malloc
};

/// All that can be said about a heap. Constexpr, at namespace scope: heaps take it by reference.
struct recipe {
  concurrency_mode concurrency = concurrency_mode::thread_caching;  ///< who may call the heap
  size_class_plan classes{};                                        ///< what sizes are rounded to
  span_plan spans{};                                                ///< how many pages a class takes at once
  thread_cache_plan thread_cache{};                                 ///< what each thread keeps
  page_plan pages{};                                                ///< pages to and from the system
  hardening_plan hardening{};                                       ///< what a program's mistakes meet with
  /// Each block is 8 bytes longer, and has at its end how much was asked for: statistics tell what
  /// rounding takes. For heaps of one's own, not for a malloc.
  bool notes_requests = false;
  const out_of_memory_handler* out_of_memory = nullptr;  ///< null: nobody is asked
};

// Clang 16 makes programs that crash of a template argument with padding at its end.
static_assert(offsetof(recipe, out_of_memory) + sizeof(recipe::out_of_memory) == sizeof(recipe));

/// The recipe of the malloc, and of heaps that are told none.
inline constexpr recipe default_recipe{};

/// What of hardening costs real programs next to nothing: docs/security.md has figures.
inline constexpr recipe checked_recipe{.hardening = {.check_callers = true, .guard_large = true}};

/// All of hardening that there is: for a malloc that finds what a program does wrong with memory.
/// `check_callers` is left out because `sealed` finds the same and more, and `zero_freed` because
/// `check_reuse` overwrites freed blocks too.
inline constexpr recipe hardened_recipe{.hardening = {.guard_large = true,
                                                      .sealed = true,
                                                      .check_reuse = true,
                                                      .quarantine_bytes = 2 * KiB,
                                                      .random_places = true,
                                                      .separate_classes = true}};

/// The recipe R for one thread at a time.
template <const recipe& R>
inline constexpr recipe for_one_thread = [] {
  recipe r = R;
  r.concurrency = concurrency_mode::single_threaded;
  return r;
}();

}  // namespace heapwright
