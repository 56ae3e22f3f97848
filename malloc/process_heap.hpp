// The heap of the process and the calling thread's place in it.
//
// States of a thread:  unseen    this_cache == &no_cache      its first miss opens a cache
//                      active    this_cache == its own cache
//                      ended     this_cache == &ended_cache   its destructors have run; what still allocates or frees in it
//                                                             (other libraries' destructors, libc) goes without a cache
// Both static caches are empty for ever, so the fast path needs no question about the state.
#pragma once

#include <heapwright/heap/heap.hpp>
#include <heapwright/platform/linux/linux_os.hpp>

namespace heapwright::process {

using heap_type = heap<default_recipe, linux_os>;
using cache_type = heap_type::cache;

extern constinit heap_type the_heap;

// One word of static TLS: a library that needs much more of it cannot be loaded by dlopen.
extern thread_local constinit cache_type* this_cache [[gnu::tls_model("initial-exec")]];

/// The calling thread's cache, opened if it has none yet; null when it has ended or there is no memory for one.
[[nodiscard, gnu::noinline]] cache_type* cache_of_this_thread() noexcept;

/// The slow steps of malloc and free, in any state of the thread. Null: no memory (errno is left alone).
[[nodiscard, gnu::noinline]] void* allocate_slow(std::size_t size) noexcept;
[[nodiscard, gnu::noinline]] void* allocate_aligned(std::size_t size, std::size_t alignment) noexcept;
[[nodiscard, gnu::noinline]] void* allocate_zeroed(std::size_t size) noexcept;
[[nodiscard, gnu::noinline]] void* reallocate(void* p, std::size_t size) noexcept;
[[gnu::noinline]] void deallocate_slow(void* p) noexcept;
std::size_t trim() noexcept;

[[nodiscard]] inline void* allocate(std::size_t size) noexcept {
  if (void* const p = this_cache->pop(size)) [[likely]]
    return p;
  return allocate_slow(size);
}

inline void deallocate(void* p) noexcept {
  if (this_cache->push(p)) [[likely]]
    return;
  deallocate_slow(p);
}

}  // namespace heapwright::process
