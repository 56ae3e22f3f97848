// The one way from an entry (malloc, operator new, ...) into the heap. An entry says what happens
// when there is no memory: its OnFailure. The fast path pops from the thread's free list; a miss
// goes down once.
//
//   allocate ─┬─ up to 256 bytes: the size gives the class
//             │    └─ free list empty ── allocate_class_slow ── null: OnFailure
//             └─ allocate_larger: the class from a table or a formula
//                  └─ none, or free list empty ── allocate_slow ── null: OnFailure
#pragma once

#include <cerrno>
#include <cstddef>

#include "../process_heap.hpp"

namespace heapwright::process {

/// The heap's own answer: null, errno as it was.
struct return_null {
  static constexpr bool never_throws = true;
  static void* handle(std::size_t, std::size_t, block_origin = {}) noexcept { return nullptr; }
};

/// What the C entries do.
struct set_errno {
  static constexpr bool never_throws = true;
  static void* handle(std::size_t, std::size_t, block_origin = {}) noexcept {
    errno = ENOMEM;
    return nullptr;
  }
};

/// The free list of this class is empty. The size that was asked for would cost the fast path a
/// register.
template <class OnFailure>
[[nodiscard, gnu::noinline, gnu::cold]] void* refill(class_offset offset) noexcept(OnFailure::never_throws) {
  const unsigned c = cache_type::class_at(offset);
  if (void* const cut = this_cache->cut(c)) return cut;
  void* const p = allocate_class_slow(c);
  return p != nullptr ? p : OnFailure::handle(class_table<chosen_recipe>::of(c).size, natural_alignment);
}

template <class OnFailure>
[[nodiscard, gnu::noinline]] void* allocate_larger(std::size_t size) noexcept(OnFailure::never_throws) {
  if (void* const p = this_cache->pop(size)) [[likely]]
    return p;
  void* const p = allocate_slow(size);
  return p != nullptr ? p : OnFailure::handle(size, natural_alignment);
}

/// With a seal (recipe.hardening.sealed). `alignment` 0: none was asked for.
template <class OnFailure>
[[nodiscard, gnu::always_inline]] inline void* allocate_with_seal(
    std::size_t size, block_origin origin, std::size_t alignment) noexcept(OnFailure::never_throws) {
  const bool is_malloc = origin == block_origin::malloc && alignment == 0;
  void* const p = size == 0   ? allocate_no_bytes(origin, alignment)
                  : is_malloc ? malloc_sealed(size)
                              : allocate_sealed(size, origin, alignment);
  if (p == nullptr) [[unlikely]]
    return OnFailure::handle(size, alignment, origin);
  return p;
}

/// `size` bytes aligned to natural_alignment.
template <class OnFailure>
[[nodiscard, gnu::always_inline]] inline void* allocate(
    std::size_t size, [[maybe_unused]] block_origin origin = block_origin::malloc) noexcept(OnFailure::never_throws) {
  if constexpr (heap_type::is_sealed) return allocate_with_seal<OnFailure>(size, origin, 0);
  constexpr bool sizes_are_even = cache_type::even_max != 0;
  if (size > (sizes_are_even ? cache_type::even_max : cache_type::small_max)) [[unlikely]]
    return allocate_larger<OnFailure>(size);
  const class_offset offset = sizes_are_even ? cache_type::offset_of_even(size) : cache_type::offset_of_small(size);
  if (void* const p = this_cache->pop(offset)) [[likely]]
    return p;
  return refill<OnFailure>(offset);
}

/// `size` bytes aligned to `alignment`, any power of two.
template <class OnFailure>
[[nodiscard]] inline void* allocate_aligned(
    std::size_t size, std::size_t alignment,
    [[maybe_unused]] block_origin origin = block_origin::malloc) noexcept(OnFailure::never_throws) {
  if constexpr (heap_type::is_sealed) return allocate_with_seal<OnFailure>(size, origin, alignment);
  if (alignment <= natural_alignment) return allocate<OnFailure>(size);
  const unsigned c = class_table<chosen_recipe>::index_aligned(size, alignment);
  if (void* const p = this_cache->pop(cache_type::offset_of(c))) [[likely]]
    return p;
  void* const p = allocate_aligned_slow(size, alignment);
  return p != nullptr ? p : OnFailure::handle(size, alignment);
}

}  // namespace heapwright::process
