// All of the kit, for the platform that it is compiled for: one include, and short names for what
// needs to know the platform.
#pragma once

#include <heapwright/adapt/compact_copy.hpp>
#include <heapwright/adapt/memory_resource.hpp>
#include <heapwright/adapt/std_allocator.hpp>
#include <heapwright/adapt/unique.hpp>
#include <heapwright/allocator/best_fit.hpp>
#include <heapwright/allocator/object_pool.hpp>
#include <heapwright/allocator/pool.hpp>
#include <heapwright/allocator/slab.hpp>
#include <heapwright/allocator/stack_arena.hpp>
#include <heapwright/combine/bucketed.hpp>
#include <heapwright/combine/cached.hpp>
#include <heapwright/combine/fallback.hpp>
#include <heapwright/combine/guarded.hpp>
#include <heapwright/combine/leak_checked.hpp>
#include <heapwright/combine/locked.hpp>
#include <heapwright/combine/metered.hpp>
#include <heapwright/combine/poisoned.hpp>
#include <heapwright/combine/segregate.hpp>
#include <heapwright/combine/sharded.hpp>
#include <heapwright/platform/native.hpp>
#include <heapwright/source/buffer.hpp>
#include <heapwright/source/guard_pages.hpp>
#include <heapwright/source/huge_pages.hpp>
#include <heapwright/source/os_pages.hpp>
#include <heapwright/source/slab_memory.hpp>
#include <heapwright/source/upstream.hpp>

namespace heapwright {

/// The sources and the lock of this platform.
using system_pages = os_pages<native_os>;
using system_huge_pages = huge_pages<native_os>;
using system_guard_pages = guard_pages<native_os>;
using system_lock = lock<native_os>;

/// A for any number of threads, under one lock.
template <class A>
using shared = locked<A, system_lock>;

/// A pool for any number of threads, each with a cache of its own.
template <allocator Source = upstream_malloc>
using concurrent_pool = cached<pool<Source>, system_lock>;

/// A slab for any number of threads, each with a cache of its own.
template <allocator Source = slab_memory>
using concurrent_slab = cached<slab<Source>, system_lock>;

/// Best-fit heaps side by side in one range of memory, for any number of threads.
template <best_fit_plan Plan = best_fit_plan{}, unsigned Shards = 16>
using concurrent_best_fit = sharded<best_fit<Plan>, system_lock, Shards>;

}  // namespace heapwright
