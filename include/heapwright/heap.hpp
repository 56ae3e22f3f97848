// Heaps of one's own, for the platform that they are compiled for:
//
//   constexpr heapwright::recipe for_parsing{.pages = {.limit = 64 * heapwright::MiB}};
//   heapwright::heap<for_parsing> parser("parser");
//   void* const p = parser.allocate(100);
//   parser.deallocate(p);
//
// With HEAPWRIGHT_DEFAULT_MALLOC defined for the whole program every block is a block of the
// process's malloc, so that Valgrind and sanitizers see it. Heaps in memory of the caller stay as
// they are.
#pragma once

#include <heapwright/adapt/recycler.hpp>
#include <heapwright/heap/basic_heap.hpp>
#include <heapwright/platform/native.hpp>

#ifdef HEAPWRIGHT_DEFAULT_MALLOC
#include <heapwright/heap/malloc_heap.hpp>
#endif

namespace heapwright {

/// A heap of one's own with the recipe R. With HEAPWRIGHT_DEFAULT_MALLOC each block is a block of
/// the process's malloc, and the heap says at its end what is not freed if HEAPWRIGHT_LEAKS is 1 in
/// the environment.
#ifdef HEAPWRIGHT_DEFAULT_MALLOC
template <const recipe& R = default_recipe>
using heap = malloc_heap<basic_heap<R, native_os>>;
#else
template <const recipe& R = default_recipe>
using heap = basic_heap<R, native_os>;
#endif

/// A heap that one thread uses at a time, and the program sees to it: no locks, no atomic
/// read-modify-writes.
template <const recipe& R = default_recipe>
using local_heap = heap<for_one_thread<R>>;

}  // namespace heapwright
