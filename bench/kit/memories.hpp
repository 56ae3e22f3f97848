// Where a container of the benchmarks gets its memory: each memory has `of<T>`, a standard
// allocator, and `get<T>()`, one of these that uses this memory. A memory lives as long as one
// benchmark, so that it is as warm as malloc is; `restart`, where there is one, goes before each
// iteration.
#pragma once

#include <heapwright/kit.hpp>

#include <boost/container/pmr/polymorphic_allocator.hpp>
#include <boost/container/pmr/unsynchronized_pool_resource.hpp>
#include <boost/pool/pool_alloc.hpp>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <memory_resource>
#include <span>
#include <utility>

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

/// 1 GiB of pages; those that were touched stay.
struct reserved {
  static constexpr heapwright::layout range = {heapwright::GiB, 4096};
  heapwright::system_pages pages;
  std::byte* const begin = static_cast<std::byte*>(pages.allocate(range));
  reserved() {
    if (begin == nullptr) std::abort();
  }
  ~reserved() { pages.deallocate(begin, range); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {begin, range.size}; }
};

template <heapwright::best_fit_plan Plan>
struct heap_in_pages : reserved, heapwright::best_fit<Plan> {
  heap_in_pages() : heapwright::best_fit<Plan>(bytes()) {}
};

using best_fit_merging = by_kit<heap_in_pages<heapwright::best_fit_plan{}>>;
using deferred_heap = heap_in_pages<heapwright::best_fit_plan{.merging = heapwright::merge::deferred}>;
using best_fit_deferred = by_kit<deferred_heap>;
using kit_pools = by_kit<heapwright::segregate<512, heapwright::bucketed<heapwright::pool<>, 512, 8>, deferred_heap>>;

template <heapwright::take_back TakeBack>
struct arena_in_pages : reserved, heapwright::arena<heapwright::no_source, TakeBack> {
  arena_in_pages() : heapwright::arena<heapwright::no_source, TakeBack>(bytes()) {}
};

/// Everything is freed between iterations.
template <heapwright::take_back TakeBack>
struct kit_arena : by_kit<arena_in_pages<TakeBack>> {
  void restart() { this->memory.reset(); }
};

/// What memory costs without an allocator: the next bytes, which are warm, without a look at their
/// end, and nothing when they come back.
struct bare_bump : reserved {
  std::byte* next = begin;
  void* allocate(heapwright::layout l) noexcept { return std::exchange(next, next + heapwright::align_up(l.size, 8)); }
  void deallocate(void*, heapwright::layout) noexcept {}
  void reset() { next = begin; }
};

/// The same, with a list per size of what came back, for nodes and for the long strings: where
/// memory is used again, it is in the cache.
struct bare_lists : bare_bump {
  struct link {
    link* next;
  };
  static constexpr std::size_t lists_end = 66;
  std::array<link*, lists_end> lists{};
  static constexpr std::size_t list_of(std::size_t size) {
    return size <= 512 ? (size + 7) / 8 : size > 16384 && size < 16500 ? 65 : lists_end;
  }
  void* allocate(heapwright::layout l) noexcept {
    const std::size_t i = list_of(l.size);
    if (i == lists_end || lists[i] == nullptr) return bare_bump::allocate(l);
    return std::exchange(lists[i], lists[i]->next);
  }
  void deallocate(void* p, heapwright::layout l) noexcept {
    const std::size_t i = list_of(l.size);
    if (i != lists_end) lists[i] = new (p) link{lists[i]};
  }
  void reset() {
    lists = {};
    bare_bump::reset();
  }
};

template <class Bare>
struct by_floor : by_kit<Bare> {
  void restart() { this->memory.reset(); }
};

/// A free list as one writes it by hand for one structure: of one size, in one block of memory.
template <std::size_t Size>
struct hand_written_list : reserved {
  struct link {
    link* next;
  };
  link* free = nullptr;
  std::byte* fresh = begin;
  void* allocate() noexcept {
    link* const b = free;
    if (b == nullptr) return std::exchange(fresh, fresh + Size);
    free = b->next;
    return b;
  }
  void deallocate(void* p) noexcept { free = new (p) link{free}; }
};

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

struct by_pmr_monotonic : by_pmr<std::pmr::monotonic_buffer_resource> {
  void restart() { resource.release(); }
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
