// The heap of a process on Windows, and how the calling thread finds its cache of it: by a slot of
// the thread's own record (TEB), which the system gives out with TlsAlloc. The compiler's
// thread_local would call malloc.
//
// States of a thread, as its slot has them:
//   null             unseen: the thread's first call opens a cache of its own
//   its own cache    active
//   the empty cache  ended: DllMain was told so. What still allocates or frees in it (other
//                    libraries' DllMain) borrows a cache for each call
//
// ExitProcess ends all other threads wherever they are, then calls every library. A thread may have
// ended with a lock held. So from then on no lock is taken: what the calling thread has in its
// cache is used, new memory comes from the system, and what is freed stays.
#pragma once

#include <intrin.h>

#include <heapwright/heap/heap_core.hpp>
#include <heapwright/malloc/process_report.hpp>
#include <heapwright/platform/windows/windows_os.hpp>

#include "../chosen_recipe.hpp"
#include "windows_headers.hpp"

namespace heapwright::process {

static_assert(!chosen_recipe.notes_requests, "recipe.notes_requests: for heaps of one's own, not for a malloc");
static_assert(chosen_recipe.concurrency == concurrency_mode::thread_caching,
              "recipe.concurrency: central and single_threaded are for heaps of one's own; a malloc is thread_caching");
static_assert(!chosen_recipe.hardening.check_callers,
              "recipe.hardening.check_callers: not for a malloc on Windows, to which blocks of C libraries come too");
static_assert(!chosen_recipe.hardening.sealed, "recipe.hardening.sealed: not yet for a malloc on Windows");

using heap_type = heap_core<chosen_recipe, windows_os>;
using cache_type = heap_type::cache;

extern constinit heap_type the_heap;

/// Before the first call of malloc. False: the system has no slot.
[[nodiscard]] bool begin() noexcept;

/// The calling thread ends.
void end_this_thread() noexcept;

/// What TlsAlloc has given; below 64.
extern DWORD cache_slot;

/// Null: the thread is unseen.
[[nodiscard, gnu::always_inline]] inline cache_type* this_cache() noexcept {
  constexpr unsigned long first_slot_in_record = 0x1480;  // of x86-64; the system's own TlsGetValue is inlined so
  return reinterpret_cast<cache_type*>(__readgsqword(first_slot_in_record + cache_slot * DWORD{sizeof(void*)}));
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

std::size_t trim() noexcept;

[[nodiscard]] malloc_statistics collect_statistics() noexcept;

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
