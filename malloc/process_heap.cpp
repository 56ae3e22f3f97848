#include "process_heap.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <pthread.h>

#include <heapwright/malloc/process_record.hpp>

#include "guarded_samples.hpp"
#include "libc_malloc.hpp"
#include "misuse_report.hpp"

namespace heapwright::process {

constinit heap_type the_heap;

namespace {

// Of an archive, a program gets only what something refers to. With the heap have to come start-up
// and all of malloc: a program that refers to operator new alone would get that from us, and malloc
// from libc.
[[gnu::used]] const process_record* const brings_startup = &heapwright_process_record;
[[gnu::used]] void* (*const brings_malloc)(std::size_t) = &std::malloc;

constexpr cache_type no_cache = the_heap.empty_cache();

// It is never written to: it has nothing to pop and matches no owner.
constexpr cache_type* no_cache_of_its_own = const_cast<cache_type*>(&no_cache);

thread_local constinit bool this_thread_has_ended [[gnu::tls_model("initial-exec")]] = false;

constexpr std::uint64_t no_key = ~std::uint64_t{0};
constinit std::atomic<std::uint64_t> thread_end_key{no_key};

void close_this_thread(void* cache) noexcept {
  this_thread_has_ended = true;
  this_cache = no_cache_of_its_own;
  the_heap.close_cache(static_cast<cache_type*>(cache));
}

cache_type* cache_of_forking_thread() noexcept {
  return this_cache->id == 0 ? nullptr : this_cache;  // the empty cache has no number
}

/// With the first cache of the process. Returns the key, or no_key when there is none to be had.
std::uint64_t hook_thread_end_and_fork() noexcept {
  pthread_key_t key;
  if (::pthread_key_create(&key, [](void* c) { close_this_thread(c); }) != 0) return no_key;
  std::uint64_t expected = no_key;
  if (!thread_end_key.compare_exchange_strong(expected, key)) {
    ::pthread_key_delete(key);
    return expected;
  }
  ::pthread_atfork(
      [] {
        the_samples.fork_lock().acquire();
        the_heap.lock_all();
      },
      [] {
        the_heap.unlock_all();
        the_samples.fork_lock().release();
      },
      [] {
        the_heap.after_fork_in_child(cache_of_forking_thread());
        the_samples.fork_lock().reset_after_fork();
      });
  return key;
}

/// Without a key the cache is lost when the thread ends, and nothing else.
void close_at_thread_end(cache_type* cache) noexcept {
  std::uint64_t key = thread_end_key.load(std::memory_order_acquire);
  if (key == no_key) key = hook_thread_end_and_fork();
  // May itself allocate, for keys beyond the first few: this_cache is set by then.
  if (key != no_key) ::pthread_setspecific(static_cast<pthread_key_t>(key), cache);
}

}  // namespace

thread_local constinit cache_type* this_cache = no_cache_of_its_own;

namespace {

/// The calling thread's cache, opened if it has none yet; null when it has ended or there is no
/// memory for one.
cache_type* cache_of_this_thread() noexcept {
  if (this_cache != no_cache_of_its_own) [[likely]]
    return this_cache;
  if (this_thread_has_ended) return nullptr;
  cache_type* const fresh = the_heap.open_cache();
  if (fresh == nullptr) return nullptr;
  this_cache = fresh;
  close_at_thread_end(fresh);
  return fresh;
}

/// The calling thread's cache, or a borrowed one.
struct any_cache : heap_type::cache_for_now {
  any_cache() noexcept : cache_for_now(the_heap, cache_of_this_thread()) {}
};

}  // namespace

bool process_os::give_back() noexcept { return the_samples.give_up_freed(); }

void register_this_thread() noexcept { (void)cache_of_this_thread(); }

namespace {

/// A guarded block, if one is due; null otherwise. `c`: the class whose free list is empty, or 0.
[[nodiscard]] void* sample(unsigned c, std::size_t size, std::size_t alignment) noexcept {
  if (!the_samples.is_on()) [[likely]]
    return nullptr;
  // What was freed since the last slow step has been allocated since then, as a rule.
  const std::uint32_t count = c == 0 ? 1 : this_cache->length(c) + 1;
  return the_samples.is_due(count) ? the_samples.allocate(size, alignment) : nullptr;
}

[[nodiscard]] unsigned class_for(std::size_t size) noexcept { return class_table<chosen_recipe>::index(size); }

}  // namespace

void* allocate_slow(std::size_t size) noexcept {
  if (void* const p = sample(class_for(size), size, default_alignment)) [[unlikely]]
    return p;
  return the_heap.allocate_slow(*any_cache(), size);
}

void* allocate_class_slow(unsigned c) noexcept {
  if (void* const p = sample(c, class_table<chosen_recipe>::of(c).size, default_alignment)) [[unlikely]]
    return p;
  return the_heap.allocate_class(*any_cache(), c);
}

void* allocate_aligned_slow(std::size_t size, std::size_t alignment) noexcept {
  if (void* const p = sample(0, size, alignment)) [[unlikely]]
    return p;
  return the_heap.allocate_aligned(*any_cache(), size, alignment);
}

void* allocate_zeroed_slow(std::size_t size) noexcept {
  if (void* const p = sample(class_for(size), size, default_alignment)) [[unlikely]]
    return p;
  return the_heap.allocate_zeroed_slow(*any_cache(), size);
}

namespace {

[[nodiscard]] void* allocate_unsampled(std::size_t size) noexcept {
  if constexpr (heap_type::is_sealed)
    return the_heap.allocate_sealed_slow(*any_cache(), size, block_origin::malloc, 0);
  else
    return the_heap.allocate_slow(*any_cache(), size);
}

[[gnu::noinline, gnu::cold]] void* reallocate_sample(void* p, std::size_t had, std::size_t size) noexcept {
  if (had == 0) return nullptr;  // a mistake, and the process goes on
  void* const fresh = allocate_unsampled(size);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, p, std::min(had, size));
  (void)the_samples.deallocate(p, {});
  return fresh;
}

}  // namespace

void* reallocate(void* p, std::size_t size) noexcept {
  if constexpr (heap_type::is_sealed) {
    if (const std::optional<std::size_t> had = the_samples.size(p, realloc_names))
      return reallocate_sample(p, *had, size);
    return the_heap.reallocate_sealed(*any_cache(), p, size);
  }
  const std::size_t usable = the_heap.usable_size(p);
  if (usable == 0) [[unlikely]] {
    if (const std::optional<std::size_t> had = the_samples.size(p, realloc_names))
      return reallocate_sample(p, *had, size);
    return the_heap.note_no_block(p, realloc_names) ? nullptr : libc_realloc(p, size);
  }
  return the_heap.reallocate(*any_cache(), p, usable, size);
}

void deallocate_slow(void* p, std::size_t size, std::size_t alignment) noexcept {
  // Without seals nobody notes which alignment was asked for.
  if (the_samples.is_on() && the_samples.deallocate(p, {.size = size})) [[unlikely]]
    return;
  const bool is_ours = the_heap.deallocate_slow(*any_cache(), p, {.size = size, .alignment = alignment});
  if (!is_ours) libc_free(p);
}

namespace {

// Where samples are guarded, or the thread has no cache.

[[gnu::noinline, gnu::cold]] void* allocate_sealed_slow(std::size_t size, block_origin origin,
                                                        std::size_t alignment) noexcept {
  if (the_samples.is_on() && size != 0 && the_samples.is_due(1)) {
    if (void* const p = the_samples.allocate(size, alignment, origin)) return p;
  }
  if constexpr (heap_type::is_sealed) return the_heap.allocate_sealed_slow(*any_cache(), size, origin, alignment);
  return nullptr;
}

[[gnu::noinline, gnu::cold]] void deallocate_sealed_slow(void* p, block_origin origin, std::size_t size,
                                                         std::size_t alignment) noexcept {
  const block_claim said{.origin = origin, .size = size, .alignment = alignment};
  // Where the page map knows the page, no sample lies: the samples' lock is left alone.
  if (the_samples.is_on() && the_heap.pages().map().tag(p) == 0 && the_samples.deallocate(p, said)) return;
  if constexpr (heap_type::is_sealed) the_heap.deallocate_sealed_slow(*any_cache(), p, origin, size, alignment);
}

// Blocks with seals have no step of their own that is slow enough: each allocation is looked at.

[[gnu::always_inline]] inline void* allocate_sealed_inline(std::size_t size, block_origin origin,
                                                           std::size_t alignment) noexcept {
  if (the_samples.is_on() || this_cache == no_cache_of_its_own) [[unlikely]]
    return allocate_sealed_slow(size, origin, alignment);
  if constexpr (heap_type::is_sealed) return the_heap.allocate_sealed(*this_cache, size, origin, alignment);
  return nullptr;
}

[[gnu::always_inline]] inline void deallocate_sealed_inline(void* p, block_origin origin, std::size_t size,
                                                            std::size_t alignment) noexcept {
  if (the_samples.is_on() || this_cache == no_cache_of_its_own) [[unlikely]]
    return deallocate_sealed_slow(p, origin, size, alignment);
  if constexpr (heap_type::is_sealed)
    the_heap.deallocate_sealed(*this_cache, p, {.origin = origin, .size = size, .alignment = alignment});
}

}  // namespace

void* allocate_sealed(std::size_t size, block_origin origin, std::size_t alignment) noexcept {
  return allocate_sealed_inline(size, origin, alignment);
}

void deallocate_sealed(void* p, block_origin origin, std::size_t size, std::size_t alignment) noexcept {
  deallocate_sealed_inline(p, origin, size, alignment);
}

void* allocate_no_bytes(block_origin origin, std::size_t alignment) noexcept {
  if constexpr (heap_type::is_sealed) {
    void* const p = alignment == 0 ? the_heap.allocate_empty(origin) : nullptr;
    if (p != nullptr) return p;
  }
  return allocate_sealed(0, origin, alignment);
}

void* malloc_sealed(std::size_t size) noexcept { return allocate_sealed_inline(size, block_origin::malloc, 0); }

void free_sealed(void* p) noexcept {
  deallocate_sealed_inline(p, block_origin::malloc, block_claim::not_said, block_claim::not_said);
}

std::size_t usable_size(void* p) noexcept {
  if constexpr (heap_type::is_sealed) {
    if (const std::optional<std::size_t> of_sample = the_samples.size(p, size_names)) return *of_sample;
    return p == nullptr ? 0 : the_heap.size_of_sealed(p);
  }
  const std::size_t usable = the_heap.usable_size(p);
  return usable == 0 ? the_samples.size(p, size_names).value_or(0) : usable;
}

std::size_t size_for_probe(void* p) noexcept {
  if constexpr (heap_type::is_sealed) {
    if (const std::size_t of_sample = the_samples.size_if_live(p); of_sample != 0) return of_sample;
    return p == nullptr ? 0 : the_heap.size_if_live_sealed(p);
  }
  const std::size_t usable = the_heap.usable_size(p);
  return usable == 0 ? the_samples.size_if_live(p) : usable;
}

void set_origin([[maybe_unused]] void* p, [[maybe_unused]] block_origin origin) noexcept {
  if constexpr (heap_type::is_sealed) {
    if (!the_samples.set_origin(p, origin)) the_heap.set_origin_of_sealed(p, origin);
  }
}

void check_before_exit() noexcept {
  if (this_cache == no_cache_of_its_own) return;
  the_heap.check_quarantine(*this_cache);
  if constexpr (heap_type::is_sealed) {
    if (has_reported_misuse()) return;  // what has been told is not told again
    // A process that has more ends without delay.
    constexpr std::size_t most = std::size_t{1} << 20;
    if (the_heap.is_whole())
      the_heap.check_all(most);
    else
      the_heap.check_lists(*this_cache);
  }
}

std::size_t trim() noexcept { return the_heap.trim(*any_cache()); }

}  // namespace heapwright::process
