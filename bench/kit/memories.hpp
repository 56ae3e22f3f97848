// Where a container of the benchmarks gets its memory: each memory has `of<T>`, a standard allocator, and `get<T>()`, one of these that
// uses this memory. A memory lives as long as one benchmark, so that it is as warm as malloc is.
#pragma once

#include <heapwright/kit.hpp>

#include <boost/container/pmr/polymorphic_allocator.hpp>
#include <boost/container/pmr/unsynchronized_pool_resource.hpp>
#include <boost/pool/pool_alloc.hpp>

#include <memory>
#include <memory_resource>

namespace bench {

/// The process's malloc, whichever is preloaded.
struct by_malloc {
  template <class T>
  using of = std::allocator<T>;
  template <class T>
  of<T> get() {
    return {};
  }
};

template <heapwright::allocator A>
struct by_kit {
  A memory;
  template <class T>
  using of = heapwright::std_allocator<T, A>;
  template <class T>
  of<T> get() {
    return of<T>(memory);
  }
};

/// A best-fit heap in 1 GiB of untouched pages.
template <heapwright::best_fit_plan Plan>
struct heap_in_pages : heapwright::best_fit<Plan> {
  static constexpr heapwright::layout range = {heapwright::GiB, 4096};
  heapwright::system_pages pages;
  std::byte* const begin = static_cast<std::byte*>(pages.allocate(range));
  heap_in_pages() {
    if (begin == nullptr || !this->attach({begin, range.size})) std::abort();
  }
  ~heap_in_pages() { pages.deallocate(begin, range); }
};

using best_fit_merging = by_kit<heap_in_pages<heapwright::best_fit_plan{}>>;
using best_fit_deferred = by_kit<heap_in_pages<heapwright::best_fit_plan{.merging = heapwright::merge::deferred}>>;
using kit_pools =
    by_kit<heapwright::segregate<512, heapwright::bucketed<heapwright::pool<>>, heapwright::upstream_malloc>>;

template <class Resource>
struct by_pmr {
  Resource resource;
  template <class T>
  using of = std::pmr::polymorphic_allocator<T>;
  template <class T>
  of<T> get() {
    return of<T>(&resource);
  }
};

struct by_boost_pmr {
  boost::container::pmr::unsynchronized_pool_resource resource;
  template <class T>
  using of = boost::container::pmr::polymorphic_allocator<T>;
  template <class T>
  of<T> get() {
    return of<T>(&resource);
  }
};

/// One pool per size for the whole program; meant for containers of nodes.
struct by_boost_pool {
  template <class T>
  using of = boost::fast_pool_allocator<T, boost::default_user_allocator_new_delete, boost::details::pool::null_mutex>;
  template <class T>
  of<T> get() {
    return {};
  }
};

}  // namespace bench
