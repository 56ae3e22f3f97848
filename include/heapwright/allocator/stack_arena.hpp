// An arena that carries its first memory within itself, so that it lies wherever it was declared:
// on the stack, as a rule.
#pragma once

#include <cstddef>

#include <heapwright/allocator/arena.hpp>

namespace heapwright {

namespace detail {
template <std::size_t Bytes>
struct arena_memory {
  alignas(default_alignment) std::byte memory[Bytes];
};
}  // namespace detail

/// `Bytes` of its own, then chunks from `source`. Neither copied nor moved: blocks lie in it.
/// Otherwise an arena.
template <std::size_t Bytes, allocator Source = upstream_malloc, take_back TakeBack = take_back::latest>
class stack_arena : private detail::arena_memory<Bytes>, public arena<Source, TakeBack> {
 public:
  /// Draws from `source` when its own bytes are used up.
  explicit stack_arena(Source source = {}) noexcept : arena<Source, TakeBack>(this->memory, source) {}
};

}  // namespace heapwright
