// What makes an allocator, and what it may additionally be able to do. Two functions suffice; every
// capability is a concept of its own that the compiler finds, so that an allocator states nothing
// about itself beyond its functions.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <heapwright/core/layout.hpp>

namespace heapwright {

/// allocate returns memory of at least l.size bytes aligned to l.alignment, or null when it has
/// none ("not from me"). deallocate takes what allocate returned, with the same layout; null does
/// nothing. Neither throws. A size of zero is a size like any other: the pointer is not null, is
/// not to be used, and is given back.
template <class A>
concept allocator = requires(A a, layout l, void* p) {
  { a.allocate(l) } noexcept -> std::same_as<void*>;
  { a.deallocate(p, l) } noexcept;
};

/// owns(p): true for the address of each live block of this allocator, false for pointers into
/// memory that is not its own. Either for a pointer into a block, and for a free block. Safe for
/// any value.
template <class A>
concept can_own = requires(const A a, const void* p) {
  { a.owns(p) } noexcept -> std::same_as<bool>;
};

/// deallocate(p): frees without being told the layout.
template <class A>
concept can_deallocate_unsized = requires(A a, void* p) {
  { a.deallocate(p) } noexcept;
};

/// allocate() and deallocate(p): blocks of the one layout that the allocator was made for.
template <class A>
concept has_one_layout = can_deallocate_unsized<A> && requires(A a) {
  { a.allocate() } noexcept -> std::same_as<void*>;
};

/// usable_size(p): bytes that may be used behind p, >= the size asked for.
template <class A>
concept has_usable_size = requires(const A a, const void* p) {
  { a.usable_size(p) } noexcept -> std::same_as<std::size_t>;
};

/// attach(range): takes a range of memory that the caller has; false if it is too small.
template <class A>
concept can_attach = requires(A a, std::span<std::byte> range) {
  { a.attach(range) } noexcept -> std::same_as<bool>;
};

/// try_resize(p, old, new): changes the size in place; false leaves the block as it was.
template <class A>
concept can_resize = requires(A a, void* p, layout from, layout to) {
  { a.try_resize(p, from, to) } noexcept -> std::same_as<bool>;
};

/// reallocate(p, size): as realloc of C. Null allocates. A size of zero frees and returns null.
/// Null otherwise means no memory, and p is as it was. The result is aligned to default_alignment.
template <class A>
concept can_reallocate = requires(A a, void* p, std::size_t size) {
  { a.reallocate(p, size) } noexcept -> std::same_as<void*>;
};

/// reset(): frees all that was allocated, at once.
template <class A>
concept can_reset = requires(A a) {
  { a.reset() } noexcept;
};

/// stats(): what it holds, as a value with `in_use` and `held` in bytes at least.
template <class A>
concept has_stats = requires(const A a) {
  { a.stats().in_use } -> std::convertible_to<std::size_t>;
  { a.stats().held } -> std::convertible_to<std::size_t>;
};

/// trim(): gives unused memory back to where it came from; returns the bytes given back.
template <class A>
concept can_trim = requires(A a) {
  { a.trim() } noexcept -> std::same_as<std::size_t>;
};

}  // namespace heapwright
