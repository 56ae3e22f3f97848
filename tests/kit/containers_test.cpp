// Every container of the standard library with every allocator of the kit: what the standard
// promises of containers holds.
#include <heapwright/adapt/memory_resource.hpp>
#include <heapwright/adapt/std_allocator.hpp>
#include <heapwright/allocator/best_fit.hpp>
#include <heapwright/allocator/pool.hpp>
#include <heapwright/allocator/slab.hpp>
#include <heapwright/allocator/stack_arena.hpp>
#include <heapwright/combine/bucketed.hpp>
#include <heapwright/combine/cached.hpp>
#include <heapwright/combine/fallback.hpp>
#include <heapwright/combine/guarded.hpp>
#include <heapwright/combine/locked.hpp>
#include <heapwright/combine/metered.hpp>
#include <heapwright/combine/segregate.hpp>
#include <heapwright/platform/native.hpp>

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace heapwright {
namespace {

using lock_type = lock<native_os>;

/// A heap in a buffer of its own.
struct heap_in_a_buffer : best_fit<> {
  heap_in_a_buffer() { EXPECT_TRUE(attach(std::span(*memory))); }
  std::unique_ptr<std::array<std::byte, 4 * MiB>> memory = std::make_unique<std::array<std::byte, 4 * MiB>>();
};

// Each is a complete memory for a container: small and large, any alignment.
using with_arena = arena<>;
using with_stack_arena = stack_arena<512>;
using with_malloc = upstream_malloc;
using with_best_fit = heap_in_a_buffer;
using with_pools = fallback<bucketed<pool<>, 256>, upstream_malloc>;
using with_slabs = fallback<bucketed<slab<>, 256>, upstream_malloc>;
using with_concurrent_pools =
    fallback<bucketed<cached<pool<>, lock_type, cached_plan{.threads = 4}>, 128>, upstream_malloc>;
using with_locked = locked<arena<>, lock_type>;
using with_everything = guarded<metered<fallback<stack_arena<256, no_source>, upstream_new>>>;

template <class T, class U>
using pair_of = std::pair<const T, U>;

struct alignas(64) wide {
  int value = 0;
  wide() = default;
  wide(int v) : value(v) {}
  friend bool operator==(const wide&, const wide&) = default;
};

/// Throws when its copies are used up.
struct fragile {
  static inline int copies_left = 1 << 30;
  static inline int alive = 0;
  int value;
  fragile(int v) : value(v) { ++alive; }
  fragile(const fragile& other) : value(other.value) {
    if (--copies_left < 0) throw std::runtime_error("no copies left");
    ++alive;
  }
  ~fragile() { --alive; }
};

template <class A>
class Containers : public ::testing::Test {
 protected:
  template <class T>
  using of = std_allocator<T, A>;
  A memory;
  A other;
};

using memories = ::testing::Types<with_arena, with_stack_arena, with_malloc, with_best_fit, with_pools, with_slabs,
                                  with_concurrent_pools, with_locked, with_everything>;
TYPED_TEST_SUITE(Containers, memories);

/// What all sequences and all sets have in common: filled, copied, moved, swapped, assigned across
/// memories, emptied.
template <class C>
void life_of(typename C::allocator_type here, typename C::allocator_type there, auto fill, auto same) {
  C empty(here);
  EXPECT_TRUE(empty.empty());
  C a(here);
  fill(a, 300);
  const C reference = a;
  EXPECT_TRUE(same(a, reference));
  EXPECT_EQ(reference.get_allocator(), a.get_allocator());

  C elsewhere(a, there);
  EXPECT_TRUE(same(elsewhere, reference));
  EXPECT_EQ(elsewhere.get_allocator(), there);

  C taken(std::move(elsewhere));
  EXPECT_TRUE(same(taken, reference));
  EXPECT_EQ(taken.get_allocator(), there);
  C moved_across(std::move(taken), here);
  EXPECT_TRUE(same(moved_across, reference));
  EXPECT_EQ(moved_across.get_allocator(), here);

  C assigned(there);
  fill(assigned, 20);
  assigned = a;
  EXPECT_TRUE(same(assigned, reference));
  EXPECT_EQ(assigned.get_allocator(), there) << "a copy stays where it was put";
  C& itself = assigned;
  assigned = itself;
  EXPECT_TRUE(same(assigned, reference));

  C target(here);
  fill(target, 10);
  target = std::move(assigned);
  EXPECT_TRUE(same(target, reference));
  EXPECT_EQ(target.get_allocator(), there) << "a move takes the memory along";

  C small(here);
  fill(small, 3);
  swap(small, target);
  EXPECT_TRUE(same(small, reference));
  EXPECT_EQ(small.get_allocator(), there);
  EXPECT_EQ(target.get_allocator(), here);
  small.clear();
  EXPECT_TRUE(small.empty());
  fill(small, 300);
  EXPECT_TRUE(same(small, reference));
}

constexpr auto push = [](auto& c, int n) {
  for (int i = 0; i < n; ++i) c.insert(c.end(), i * 7919 % 1000);
};
constexpr auto push_pairs = [](auto& c, int n) {
  for (int i = 0; i < n; ++i) c.insert({i * 7919 % 1000, i});
};
constexpr auto equal = [](const auto& a, const auto& b) { return a == b; };

TYPED_TEST(Containers, Vector) {
  life_of<std::vector<int, typename TestFixture::template of<int>>>(this->memory, this->other, push, equal);
  life_of<std::vector<bool, typename TestFixture::template of<bool>>>(this->memory, this->other, push, equal);
  life_of<std::vector<wide, typename TestFixture::template of<wide>>>(this->memory, this->other, push, equal);
}

TYPED_TEST(Containers, Deque) {
  life_of<std::deque<int, typename TestFixture::template of<int>>>(this->memory, this->other, push, equal);
  life_of<std::deque<wide, typename TestFixture::template of<wide>>>(this->memory, this->other, push, equal);
}

TYPED_TEST(Containers, List) {
  life_of<std::list<int, typename TestFixture::template of<int>>>(this->memory, this->other, push, equal);
  life_of<std::list<wide, typename TestFixture::template of<wide>>>(this->memory, this->other, push, equal);
}

TYPED_TEST(Containers, ForwardList) {
  constexpr auto push_front = [](auto& c, int n) {
    for (int i = 0; i < n; ++i) c.push_front(i);
  };
  life_of<std::forward_list<int, typename TestFixture::template of<int>>>(this->memory, this->other, push_front, equal);
}

TYPED_TEST(Containers, Sets) {
  using allocator_type = typename TestFixture::template of<int>;
  life_of<std::set<int, std::less<>, allocator_type>>(this->memory, this->other, push, equal);
  life_of<std::multiset<int, std::less<>, allocator_type>>(this->memory, this->other, push, equal);
  life_of<std::unordered_set<int, std::hash<int>, std::equal_to<>, allocator_type>>(this->memory, this->other, push,
                                                                                    equal);
  life_of<std::unordered_multiset<int, std::hash<int>, std::equal_to<>, allocator_type>>(this->memory, this->other,
                                                                                         push, equal);
}

TYPED_TEST(Containers, Maps) {
  using allocator_type = typename TestFixture::template of<pair_of<int, int>>;
  life_of<std::map<int, int, std::less<>, allocator_type>>(this->memory, this->other, push_pairs, equal);
  life_of<std::multimap<int, int, std::less<>, allocator_type>>(this->memory, this->other, push_pairs, equal);
  life_of<std::unordered_map<int, int, std::hash<int>, std::equal_to<>, allocator_type>>(this->memory, this->other,
                                                                                         push_pairs, equal);
  life_of<std::unordered_multimap<int, int, std::hash<int>, std::equal_to<>, allocator_type>>(this->memory, this->other,
                                                                                              push_pairs, equal);
}

TYPED_TEST(Containers, String) {
  using string = std::basic_string<char, std::char_traits<char>, typename TestFixture::template of<char>>;
  constexpr auto append = [](auto& s, int n) {
    for (int i = 0; i < n; ++i) s.push_back(static_cast<char>('a' + i % 26));
  };
  life_of<string>(this->memory, this->other, append, equal);
}

TYPED_TEST(Containers, NodesChangeHands) {
  using set = std::set<int, std::less<>, typename TestFixture::template of<int>>;
  set a({1, 2, 3}, this->memory), b(this->memory);
  b.insert(a.extract(2));
  EXPECT_EQ(a.size() + b.size(), 3U);
  b.merge(a);
  EXPECT_EQ(b.size(), 3U);
  std::list<int, typename TestFixture::template of<int>> x({1, 2}, this->memory), y({3}, this->memory);
  x.splice(x.begin(), y);
  EXPECT_EQ(x.size(), 3U);
}

TYPED_TEST(Containers, AThrowingCopyLosesNothing) {
  using list = std::list<fragile, typename TestFixture::template of<fragile>>;
  using vector = std::vector<fragile, typename TestFixture::template of<fragile>>;
  {
    list a({1, 2, 3, 4, 5}, this->memory);
    vector v({1, 2, 3, 4, 5}, this->memory);
    for (int copies = 0; copies < 5; ++copies) {
      fragile::copies_left = copies;
      EXPECT_THROW(list(a, this->other), std::runtime_error);
      fragile::copies_left = copies;
      EXPECT_THROW(vector(v, this->other), std::runtime_error);
    }
    fragile::copies_left = 1 << 30;
    EXPECT_EQ(fragile::alive, 10);
  }
  EXPECT_EQ(fragile::alive, 0);
}

TYPED_TEST(Containers, SharedPointers) {
  auto p = std::allocate_shared<wide>(std_allocator<wide, TypeParam>(this->memory), 42);
  EXPECT_TRUE(is_aligned(p.get(), 64));
  std::weak_ptr<wide> w = p;
  EXPECT_EQ(p->value, 42);
  p.reset();
  EXPECT_TRUE(w.expired());
}

TYPED_TEST(Containers, PmrContainers) {
  resource<upstream<TypeParam>> here(this->memory), there(this->other);
  std::pmr::map<std::pmr::string, std::pmr::vector<int>> m(&here);
  for (int i = 0; i < 200; ++i)
    m["a key that does not fit into a string " + std::pmr::string(std::to_string(i))].push_back(i);
  std::pmr::map<std::pmr::string, std::pmr::vector<int>> copy(m, &there);
  EXPECT_EQ(m, copy);
  EXPECT_EQ(copy.begin()->second.get_allocator().resource(), &there);
  EXPECT_FALSE(here == there);
}

TEST(StdAllocator, EqualWhenTheyShareTheirMemory) {
  arena<> one, two;
  std_allocator<int, arena<>> a(one), b(one), c(two);
  std_allocator<double, arena<>> d(a);
  EXPECT_TRUE(a == b && a == d);
  EXPECT_FALSE(a == c);
  static_assert(std_allocator<int, upstream_malloc>::is_always_equal::value);
  static_assert(std::is_empty_v<std_allocator<int, upstream_malloc>>);
  static_assert(!std_allocator<int, arena<>>::is_always_equal::value);
}

TEST(StdAllocator, NoMemoryIsBadAlloc) {
  alignas(16) std::array<std::byte, 64> memory;
  arena<no_source> a{memory};
  std_allocator<int, arena<no_source>> ints(a);
  EXPECT_THROW((void)ints.allocate(17), std::bad_alloc);
  EXPECT_THROW((void)ints.allocate(SIZE_MAX / 4), std::bad_array_new_length);
  int* const p = ints.allocate(16);
  ints.deallocate(p, 16);
}

TEST(UpstreamResource, ServesTheKit) {
  std::pmr::monotonic_buffer_resource pmr;
  pool<upstream_resource> p{{24, 8}, upstream_resource(pmr), 4 * KiB};
  for (int i = 0; i < 1000; ++i) ASSERT_NE(p.allocate(), nullptr);
  pool<upstream_resource> none{{24, 8}, upstream_resource(*std::pmr::null_memory_resource())};
  EXPECT_EQ(none.allocate(), nullptr);
}

// A resource need not take null.
TEST(UpstreamResource, TheFreeOfNullDoesNotReachTheResource) {
  struct refuses_null : std::pmr::memory_resource {
    void* do_allocate(std::size_t, std::size_t) override { throw std::bad_alloc(); }
    void do_deallocate(void*, std::size_t, std::size_t) override { ++calls; }
    bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
    int calls = 0;
  } pmr;
  upstream_resource(pmr).deallocate(nullptr, {24, 8});
  EXPECT_EQ(pmr.calls, 0);
}

}  // namespace
}  // namespace heapwright
