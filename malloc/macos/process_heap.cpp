#include "process_heap.hpp"

#include <cstring>

#include "../heap_statistics_of.hpp"

namespace heapwright::process {

constinit heap_type the_heap;
constinit std::atomic<pthread_key_t> cache_key{no_key};

namespace {

constexpr cache_type no_cache = the_heap.empty_cache();

// It is never written to: it has nothing to pop and matches no owner.
constexpr cache_type* no_cache_of_its_own = const_cast<cache_type*>(&no_cache);

void end_this_thread(void* cache) noexcept {
  // The value is null here. Set again, it stays: the system asks a few times, and then no more.
  ::pthread_setspecific(cache_key.load(std::memory_order_acquire), no_cache_of_its_own);
  if (cache != no_cache_of_its_own) the_heap.close_cache(static_cast<cache_type*>(cache));
}

/// no_key: the system has none left.
pthread_key_t key_or_new() noexcept {
  pthread_key_t known = cache_key.load(std::memory_order_acquire);
  if (known != no_key) return known;
  pthread_key_t fresh;
  if (::pthread_key_create(&fresh, [](void* cache) { end_this_thread(cache); }) != 0) return no_key;
  if (cache_key.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return fresh;
  ::pthread_key_delete(fresh);
  return known;
}

/// The calling thread's cache, opened if it has none yet; null when it has ended, or where there is
/// no memory for one or no key.
cache_type* cache_of_this_thread() noexcept {
  if (cache_type* const mine = this_cache()) return mine != no_cache_of_its_own ? mine : nullptr;
  const pthread_key_t key = key_or_new();
  cache_type* const fresh = key != no_key ? the_heap.open_cache() : nullptr;
  if (fresh != nullptr) ::pthread_setspecific(key, fresh);
  return fresh;
}

/// The calling thread's cache, or a borrowed one.
struct any_cache : heap_type::cache_for_now {
  any_cache() noexcept : cache_for_now(the_heap, cache_of_this_thread()) {}
};

}  // namespace

void* allocate_slow(std::size_t size) noexcept { return the_heap.allocate_slow(*any_cache(), size); }

void* allocate_aligned(std::size_t size, std::size_t alignment) noexcept {
  if (alignment <= default_alignment) return allocate(size);
  return the_heap.allocate_aligned(*any_cache(), size, alignment);
}

void* allocate_zeroed(std::size_t size) noexcept {
  if (cache_type* const mine = this_cache()) {
    if (void* const p = mine->pop(size)) return std::memset(p, 0, size);
  }
  return the_heap.allocate_zeroed_slow(*any_cache(), size);
}

void* reallocate(void* p, std::size_t usable, std::size_t size) noexcept {
  return the_heap.reallocate(*any_cache(), p, usable, size);
}

bool deallocate_slow(void* p) noexcept { return p == nullptr || the_heap.deallocate_slow(*any_cache(), p); }

std::size_t usable_size(const void* p) noexcept { return the_heap.usable_size(p); }

std::size_t rounded_up(std::size_t size) noexcept {
  using classes = class_table<chosen_recipe>;
  const unsigned c = classes::index(size);
  return c != 0 ? classes::of(c).size : align_up(size, macos_os::page_size());
}

std::size_t trim() noexcept { return the_heap.trim(*any_cache()); }

malloc_statistics collect_statistics() noexcept {
  constexpr std::uint64_t patience_ms = 1000;
  const census<chosen_recipe, macos_os> all(the_heap, patience_ms);
  return statistics_of(the_heap, all.taken(this_cache()));
}

void after_fork_in_child() noexcept {
  cache_type* const mine = this_cache();
  the_heap.after_fork_in_child(mine != no_cache_of_its_own ? mine : nullptr);
}

}  // namespace heapwright::process
