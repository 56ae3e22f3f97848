// The heap of a process on macOS, and how the calling thread finds its cache of it: by a key of
// pthread. The compiler's thread_local would call malloc, and a fixed slot may be the system's.
//
// States of a thread, as its value of the key has them:
//   null             unseen: the thread's first call opens a cache of its own
//   its own cache    active
//   the empty cache  ended: the key's destructor was called. What still allocates or frees in it
//                    borrows a cache for each call
#pragma once

#include <atomic>

#include <pthread.h>

#include <heapwright/heap/heap_core.hpp>
#include <heapwright/malloc/process_report.hpp>
#include <heapwright/platform/macos/macos_os.hpp>

#include "../chosen_recipe.hpp"

namespace heapwright::process {

static_assert(!chosen_recipe.notes_requests, "recipe.notes_requests: for heaps of one's own, not for a malloc");
static_assert(chosen_recipe.concurrency == concurrency_mode::thread_caching,
              "recipe.concurrency: central and single_threaded are for heaps of one's own; a malloc is thread_caching");
static_assert(!chosen_recipe.hardening.sealed, "recipe.hardening.sealed: not yet for a malloc on macOS");

using heap_type = heap_core<chosen_recipe, macos_os>;
using cache_type = heap_type::cache;

extern constinit heap_type the_heap;

/// Of all threads' caches; no_key until the first call of malloc, or if the system has none.
inline constexpr pthread_key_t no_key = ~pthread_key_t{0};
extern constinit std::atomic<pthread_key_t> cache_key;

/// Null: the thread is unseen.
[[nodiscard, gnu::always_inline]] inline cache_type* this_cache() noexcept {
  const pthread_key_t key = cache_key.load(std::memory_order_acquire);
  return key != no_key ? static_cast<cache_type*>(::pthread_getspecific(key)) : nullptr;
}

/// Null: no memory.
[[nodiscard, gnu::noinline]] void* allocate_slow(std::size_t size) noexcept;
[[nodiscard, gnu::noinline]] void* allocate_aligned(std::size_t size, std::size_t alignment) noexcept;
[[nodiscard, gnu::noinline]] void* allocate_zeroed(std::size_t size) noexcept;

/// p is a block of ours with so many usable bytes. Null: no memory; p is as it was.
[[nodiscard, gnu::noinline]] void* reallocate(void* p, std::size_t usable, std::size_t size) noexcept;

/// False: no block of ours.
[[nodiscard, gnu::noinline]] bool deallocate_slow(void* p) noexcept;

/// 0: no block of ours.
[[nodiscard]] std::size_t usable_size(const void* p) noexcept;

/// Usable bytes of a block of `size`.
[[nodiscard]] std::size_t rounded_up(std::size_t size) noexcept;

std::size_t trim() noexcept;

[[nodiscard]] malloc_statistics collect_statistics() noexcept;

/// In the child of a fork, which the calling thread has made.
void after_fork_in_child() noexcept;

/// Null: no memory.
[[nodiscard, gnu::always_inline]] inline void* allocate(std::size_t size) noexcept {
  if (cache_type* const mine = this_cache()) [[likely]] {
    if (void* const p = mine->pop(size)) [[likely]]
      return p;
  }
  return allocate_slow(size);
}

/// False: no block of ours.
[[nodiscard, gnu::always_inline]] inline bool deallocate(void* p) noexcept {
  if (cache_type* const mine = this_cache()) [[likely]] {
    if (mine->push(p)) [[likely]]
      return true;
  }
  return deallocate_slow(p);
}

}  // namespace heapwright::process
