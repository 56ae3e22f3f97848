// The heap of the process, and how the calling thread finds its cache of it.
//
// States of a thread:  unseen   this_cache is the empty cache; the thread's first slow step
//                               opens a cache of its own
//                      active   this_cache is its own
//                      ended    this_cache is the empty cache again: its destructors have run. What
//                               still allocates or frees in it (other libraries' destructors, libc)
//                               borrows a cache for each call
// The empty cache is empty for ever, so the fast path needs no question about the state.
#pragma once

#include <heapwright/heap/heap_core.hpp>
#include <heapwright/platform/linux/linux_os.hpp>

#include "chosen_recipe.hpp"

namespace heapwright::process {

static_assert(!chosen_recipe.notes_requests, "recipe.notes_requests: for heaps of one's own, not for a malloc");

static_assert(chosen_recipe.concurrency == concurrency_mode::thread_caching,
              "recipe.concurrency: central and single_threaded are for heaps of one's own; a malloc is thread_caching");

/// Linux, for a heap beside guarded samples.
struct process_os : linux_os {
  /// There is no memory: the pages of freed samples go back. Whether another try is worth it.
  [[nodiscard]] static bool give_back() noexcept;
};

using heap_type = heap_core<chosen_recipe, process_os>;
using cache_type = heap_type::cache;

/// What malloc's blocks are aligned to.
inline constexpr std::size_t natural_alignment = class_table<chosen_recipe>::natural_alignment;
static_assert(!heap_type::is_sealed || natural_alignment == default_alignment,
              "recipe.hardening.sealed: in a malloc classes.exact has multiples of 16 alone, for operator new");

extern constinit heap_type the_heap;

// Static TLS, of which there is little for libraries loaded by dlopen: this word, and the flag of a
// thread that has ended.
extern thread_local constinit cache_type* this_cache [[gnu::tls_model("initial-exec")]];

/// Opens the calling thread's cache, if it has none; the first one hooks fork.
void register_this_thread() noexcept;

// The slow steps of malloc and free, in any state of the thread. Null: no memory. They leave errno
// alone.
[[nodiscard, gnu::noinline]] void* allocate_slow(std::size_t size) noexcept;
[[nodiscard, gnu::noinline]] void* allocate_class_slow(unsigned c) noexcept;
[[nodiscard, gnu::noinline]] void* allocate_aligned_slow(std::size_t size, std::size_t alignment) noexcept;
[[nodiscard, gnu::noinline]] void* allocate_zeroed_slow(std::size_t size) noexcept;
[[nodiscard, gnu::noinline]] void* reallocate(void* p, std::size_t size) noexcept;
/// `size`, `alignment`: what the caller says of the block, or block_claim::not_said.
[[gnu::noinline]] void deallocate_slow(void* p, std::size_t size, std::size_t alignment) noexcept;
std::size_t trim() noexcept;

/// Looks once more at what the calling thread has freed last, where the recipe keeps that for a
/// while.
[[gnu::cold]] void check_before_exit() noexcept;

// The same where recipe.hardening.sealed says so.
[[nodiscard, gnu::noinline]] void* allocate_sealed(std::size_t size, block_origin origin,
                                                   std::size_t alignment) noexcept;
/// The last three are a block_claim, in registers.
[[gnu::noinline]] void deallocate_sealed(void* p, block_origin origin, std::size_t size,
                                         std::size_t alignment) noexcept;

/// allocate_sealed of a size of 0: a block that cannot be touched, if there is one.
[[nodiscard, gnu::noinline, gnu::cold]] void* allocate_no_bytes(block_origin origin, std::size_t alignment) noexcept;

/// allocate_sealed and deallocate_sealed of malloc and free, which say nothing of alignment, and
/// free nothing of size.
[[nodiscard, gnu::noinline]] void* malloc_sealed(std::size_t size) noexcept;
[[gnu::noinline]] void free_sealed(void* p) noexcept;

[[nodiscard]] std::size_t usable_size(void* p) noexcept;

/// What usable_size says of a live block. 0 for all else, without a report: the probe asks before
/// the program's own call, which is the mistake.
[[nodiscard]] std::size_t size_for_probe(void* p) noexcept;

/// Of a live block, where blocks have seals.
void set_origin(void* p, block_origin origin) noexcept;

inline void deallocate(void* p, [[maybe_unused]] const block_claim& said = {}) noexcept {
  if constexpr (heap_type::is_sealed) {
    const bool says_least = said.origin == block_origin::malloc && said.size == block_claim::not_said &&
                            said.alignment == block_claim::not_said;
    return says_least ? free_sealed(p) : deallocate_sealed(p, said.origin, said.size, said.alignment);
  }
  if (this_cache->push(p)) [[likely]]
    return;
  deallocate_slow(p, said.size, said.alignment);
}

/// Of blocks of a class the size is looked at in checked builds only: a program that deletes an
/// object through a pointer to a base without a virtual destructor says a wrong one, and goes on
/// well under other mallocs.
inline void deallocate_sized(void* p, const block_claim& said) noexcept {
  if constexpr (misuse<chosen_recipe, process_os>::checks) {
    if (p == nullptr) return;
    misuse<chosen_recipe, process_os>::check_size(p, said.size, usable_size(p));
  }
  deallocate(p, said);
}

}  // namespace heapwright::process
