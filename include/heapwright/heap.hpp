// Heaps of one's own, for the platform that they are compiled for.
//
//   constexpr heapwright::recipe for_parsing{.pages = {.limit = 64 * heapwright::MiB}};
//   heapwright::heap<for_parsing> parser("parser");
//   void* const p = parser.allocate(100);
//   parser.deallocate(p);
#pragma once

#include <heapwright/heap/basic_heap.hpp>
#include <heapwright/platform/linux/linux_os.hpp>

namespace heapwright {

template <recipe R>
using heap = basic_heap<R, linux_os>;

/// A heap that one thread uses at a time, and the program sees to it: no locks, no atomic read-modify-writes.
template <recipe R = default_recipe>
using local_heap = basic_heap<for_one_thread(R), linux_os>;

}  // namespace heapwright
