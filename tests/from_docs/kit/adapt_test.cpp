// States what the documentation says of the adaptors: std_allocator, memory_resource, unique,
// compact_copy. Written without the code.
#include <array>
#include <deque>
#include <list>
#include <map>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <heapwright/kit.hpp>

#include "model.hpp"

namespace {

using namespace heapwright;
using namespace from_docs;
using strict = upstream<strict_source>;

template <class T, class A>
using in = std_allocator<T, A>;

// "Any allocator of the kit for any container of the standard library"
TEST(StdAllocator, ServesContainers) {
  strict_source source;
  std::vector<int, in<int, strict_source>> numbers(source);
  std::list<std::string, in<std::string, strict_source>> names(source);
  std::map<int, long, std::less<>, in<std::pair<const int, long>, strict_source>> index(source);
  std::unordered_map<int, int, std::hash<int>, std::equal_to<>, in<std::pair<const int, int>, strict_source>> table(
      source);
  std::deque<char, in<char, strict_source>> letters(source);
  for (int i = 0; i < 500; ++i) {
    numbers.push_back(i);
    names.push_back(std::to_string(i));
    index[i] = i;
    table[i] = i;
    letters.push_front('x');
    if (i % 3 == 0) {
      names.pop_front();
      index.erase(i / 2);
      table.erase(i / 2);
      letters.pop_back();
    }
  }
  EXPECT_EQ(numbers[499], 499);
  EXPECT_EQ(numbers.get_allocator(), (in<int, strict_source>(source)));
  EXPECT_EQ(&names.get_allocator().memory(), &source);
}

// A container of containers, in one arena.
TEST(StdAllocator, ServesContainersOfContainers) {
  stack_arena<256> memory;
  using text = std::basic_string<char, std::char_traits<char>, in<char, stack_arena<256>>>;
  std::vector<text, in<text, stack_arena<256>>> words(memory);
  for (int i = 0; i < 100; ++i) words.emplace_back(text(static_cast<std::size_t>(i), 'x', memory));
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(words[i].size(), i);
}

// "Throws std::bad_alloc when A has none, and std::bad_array_new_length when n objects are more
// than half of the address space."
TEST(StdAllocator, Throws) {
  no_source nothing;
  in<long, no_source> a(nothing);
  EXPECT_THROW((void)a.allocate(1), std::bad_alloc);
  pool<> only(layout{64, 8});
  in<long, pool<>> b(only);
  EXPECT_THROW((void)b.allocate(9), std::bad_alloc);
  for (const std::size_t n : {SIZE_MAX, SIZE_MAX / 8, SIZE_MAX / 8 + 1, SIZE_MAX / 16 + 1}) {
    EXPECT_THROW((void)b.allocate(n), std::bad_array_new_length) << n;
  }
  long* const p = b.allocate(8);
  b.deallocate(p, 8);
  EXPECT_EQ(only.stats().in_use, 0u);
  long* const none = b.allocate(0);
  b.deallocate(none, 0);
  EXPECT_EQ(only.stats().in_use, 0u);
}

// "moves and swaps take the allocator along, copies stay where they are put"
TEST(StdAllocator, IsTakenAlongByMovesAndSwaps) {
  arena<> one, two;
  using numbers = std::vector<int, in<int, arena<>>>;
  numbers a({1, 2, 3}, one), b({4, 5}, two);
  EXPECT_FALSE(a.get_allocator() == b.get_allocator());
  b = a;
  EXPECT_EQ(&b.get_allocator().memory(), &two);
  EXPECT_EQ(b.size(), 3u);
  const int* const at = a.data();
  b = std::move(a);
  EXPECT_EQ(&b.get_allocator().memory(), &one);
  EXPECT_EQ(b.data(), at);
  numbers c({7}, two);
  std::swap(b, c);
  EXPECT_EQ(&b.get_allocator().memory(), &two);
  EXPECT_EQ(c.size(), 3u);
  static_assert(std::allocator_traits<in<int, upstream_malloc>>::is_always_equal::value);
  static_assert(!std::allocator_traits<in<int, arena<>>>::is_always_equal::value);
  std::vector<int, in<int, upstream_malloc>> by_value{1, 2,
                                                      3};  // "Only where A is an empty class: it is held by value."
  EXPECT_EQ(by_value.size(), 3u);
}

TEST(StdAllocator, HoldsOveralignedTypes) {
  struct alignas(4096) page {
    char c = 1;
  };
  slab<> memory(layout{3 * 4096, 4096});
  std::vector<page, in<page, slab<>>> pages(memory);
  pages.reserve(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(lies_at(&pages.emplace_back(), 4096));
}

// resource: "An allocator as a memory resource. Owns A. Throws std::bad_alloc when A has no memory.
// Equal to itself only."
TEST(MemoryResource, IsAnAllocatorAsAResource) {
  strict_source source;
  {
    resource<strict> memory(source), other(source);
    EXPECT_TRUE(memory.is_equal(memory));
    EXPECT_FALSE(memory.is_equal(other));
    std::pmr::vector<std::pmr::string> words(&memory);
    for (std::size_t i = 0; i < 200; ++i) words.emplace_back(i, 'x');
    EXPECT_EQ(words[199].size(), 199u);
    for (std::size_t alignment = 1; alignment <= 64 * KiB; alignment *= 2) {
      for (const std::size_t size : {0u, 1u, 33u}) {
        void* const p = memory.allocate(size, alignment);
        EXPECT_TRUE(lies_at(p, alignment));
        memory.deallocate(p, size, alignment);
      }
    }
  }
  resource<no_source> none;
  EXPECT_THROW((void)none.allocate(1, 1), std::bad_alloc);
  resource<pool<>> blocks(layout{64, 8});
  EXPECT_THROW((void)blocks.allocate(65, 8), std::bad_alloc);
  EXPECT_NE(blocks.allocate(64, 8), nullptr);
  EXPECT_EQ(blocks.memory().stats().in_use, 64u);
}

/// Without frees of null.
any_allocator refer_to_resource(upstream_resource& a) {
  return {[&a](layout l) { return a.allocate(l); },
          [&a](void* p, layout l) {
            if (p != nullptr) a.deallocate(p, l);
          }};
}

// "null does nothing" (concept allocator).
TEST(MemoryResource, AFreeOfNullDoesNothing) {
  std::pmr::unsynchronized_pool_resource of_std;
  upstream_resource(of_std).deallocate(nullptr, {8, 8});
}

// upstream_resource: "A memory resource as an allocator". "Null when the resource throws."
TEST(MemoryResource, IsAResourceAsAnAllocator) {
  std::pmr::unsynchronized_pool_resource of_std;
  upstream_resource a(of_std);
  walk_all(refer_to_resource(a), any_layout(5000, 8));
  upstream_resource none(*std::pmr::null_memory_resource());
  EXPECT_EQ(none.allocate({1, 1}), nullptr);
  arena<upstream_resource> b(a);
  walk_all(refer_to(b), any_layout(5000, 64));
  resource<pool<>> both_ways(layout{64, 8});
  upstream_resource c(both_ways);
  EXPECT_EQ(c.allocate({65, 8}), nullptr);
  EXPECT_NE(c.allocate({64, 8}), nullptr);
}

TEST(MemoryResource, IsAlignedWhateverTheSize) {
  std::pmr::unsynchronized_pool_resource of_std;
  upstream_resource a(of_std);
  walk_all(refer_to_resource(a), any_layout(5000, 64));
}

struct counted {
  static inline int alive = 0;
  static inline int fails_at = -1;
  static inline std::vector<int> destroyed;
  int number;
  counted() : number(alive) {
    if (alive == fails_at) throw std::runtime_error("from the constructor");
    ++alive;
  }
  explicit counted(int n) : counted() { number = n; }
  ~counted() {
    destroyed.push_back(number);
    --alive;
  }
};

// "A T in `memory`. Throws std::bad_alloc when there is none, and what T's constructor throws; then
// nothing is lost."
TEST(Unique, OwnsOneObject) {
  strict_source source;
  {
    const auto p = make_unique<counted>(source, 42);
    EXPECT_EQ(p->number, 42);
    EXPECT_EQ(counted::alive, 1);
    EXPECT_EQ(source.live(), 1u);
    auto q = make_unique<counted>(source);
    const unique<counted, strict_source> moved = std::move(q);
    EXPECT_EQ(counted::alive, 2);
    counted::fails_at = 2;
    EXPECT_THROW((void)make_unique<counted>(source), std::runtime_error);
    EXPECT_EQ(source.live(), 2u);
    counted::fails_at = -1;
  }
  EXPECT_EQ(counted::alive, 0);
  EXPECT_EQ(source.live(), 0u);
  no_source none;
  EXPECT_THROW((void)make_unique<int>(none, 1), std::bad_alloc);
}

// "An array of n value-initialised objects in `memory`, for T = U[]. Throws likewise."
TEST(Unique, OwnsAnArray) {
  strict_source source;
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
    const auto numbers = make_unique<int[]>(source, n);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(numbers[i], 0);
    const auto objects = make_unique<counted[]>(source, n);
    EXPECT_EQ(counted::alive, static_cast<int>(n));
  }
  EXPECT_EQ(counted::alive, 0);
  for (int fails_at = 0; fails_at < 5; ++fails_at) {
    counted::fails_at = fails_at;
    EXPECT_THROW((void)make_unique<counted[]>(source, 5), std::runtime_error);
    EXPECT_EQ(counted::alive, 0);
    EXPECT_EQ(source.live(), 0u);
  }
  counted::fails_at = -1;
  EXPECT_THROW((void)make_unique<long[]>(source, SIZE_MAX / 4), std::bad_alloc);
  EXPECT_THROW((void)make_unique<long[]>(source, SIZE_MAX), std::bad_alloc);
}

struct node {
  int key = 0;
  node* left = nullptr;
  node* right = nullptr;
  node* parent = nullptr;
};
const auto links_of = [](node& n) { return std::tie(n.left, n.right); };

node* random_tree(object_pool<node>& pool, random_bits& random, int nodes) {
  node* root = nullptr;
  for (int i = 0; i < nodes; ++i) {
    const int key = static_cast<int>(random() % 100'000);
    node** at = &root;
    node* parent = nullptr;
    while (*at != nullptr) {
      parent = *at;
      at = key < parent->key ? &parent->left : &parent->right;
    }
    *at = pool.make(node{.key = key, .parent = parent});
  }
  return root;
}

void same(const node* a, const node* b, const node* parent, const object_pool<node>& of, bool back) {
  ASSERT_EQ(a == nullptr, b == nullptr);
  if (a == nullptr) return;
  EXPECT_EQ(a->key, b->key);
  EXPECT_TRUE(of.owns(b));
  if (back) {
    EXPECT_EQ(b->parent, parent);
  }
  same(a->left, b->left, b, of, back);
  same(a->right, b->right, b, of, back);
}

// "`make(const Node&) -> Node*` makes each node, in depth-first order, the first link first".
// "`back(Node&) -> Node*&` gives the back link; in the copy that of the root is null."
TEST(CompactCopy, IsACopyInTheOrderOfTheWalk) {
  random_bits random(1);
  for (const int nodes : {0, 1, 2, 50, 1000}) {
    object_pool<node> pool, fresh;
    const node* const root = random_tree(pool, random, nodes);
    std::vector<int> made;
    const node* const copy = compact_copy(
        root,
        [&](const node& n) {
          made.push_back(n.key);
          return fresh.make(n);
        },
        links_of, [](node& n) -> node*& { return n.parent; });
    same(root, copy, nullptr, fresh, true);
    std::vector<int> walked;
    const auto walk_tree = [&](auto&& self, const node* n) -> void {
      if (n == nullptr) return;
      walked.push_back(n->key);
      self(self, n->left);
      self(self, n->right);
    };
    walk_tree(walk_tree, root);
    EXPECT_EQ(made, walked);
  }
}

// "Null, with what was made so far left to the caller's pool, when make returns null. What make
// throws [...] goes on to the caller."
TEST(CompactCopy, EndsWhenMakeHasNoMore) {
  random_bits random(1);
  object_pool<node> pool;
  node* const root = random_tree(pool, random, 100);
  const auto without_parents = [](object_pool<node>& to, const node& n) {
    return to.make(node{n.key, n.left, n.right, nullptr});
  };
  for (int most = 0; most < 100; most += 9) {
    object_pool<node> fresh;
    int made = 0;
    const auto make = [&](const node& n) { return made++ < most ? without_parents(fresh, n) : nullptr; };
    EXPECT_EQ(compact_copy(root, make, links_of), nullptr);
    EXPECT_EQ(fresh.stats().in_use, static_cast<std::size_t>(most) * sizeof(node));
    const auto throws = [&](const node&) -> node* { throw std::runtime_error("no more"); };
    EXPECT_THROW((void)compact_copy(root, throws, links_of), std::runtime_error);
  }
}

// A list of one link, as long as the documentation lets it be: one open link at a time.
TEST(CompactCopy, CopiesALongList) {
  object_pool<node> pool, fresh;
  node* head = nullptr;
  for (int i = 0; i < 20'000; ++i) head = pool.make(node{.key = i, .right = head});
  const node* copy = compact_copy(
      head, [&](const node& n) { return fresh.make(n); }, [](node& n) { return std::tie(n.right); });
  for (int i = 19'999; i >= 0; --i) {
    ASSERT_EQ(copy->key, i);
    copy = copy->right;
  }
  EXPECT_EQ(copy, nullptr);
}

// "Ends the process with a message when a copy would point to its own original, to the original
// before it, or to the original root: so structures with other pointers, and rings, are refused.
// Checked builds refuse a copy that points to any original."
TEST(CompactCopyDeathTest, RefusesRingsAndOtherPointers) {
  object_pool<node> fresh;
  const auto make = [&](const node& n) { return fresh.make(n); };
  std::array<node, 4> nodes;
  for (std::size_t i = 0; i < 4; ++i) nodes[i].right = &nodes[(i + 1) % 4];
  EXPECT_DEATH((void)compact_copy(&nodes[0], make, links_of), "heapwright.*");
  nodes[3].right = nullptr;
  nodes[2].parent = &nodes[2];  // to its own original
  EXPECT_DEATH((void)compact_copy(&nodes[0], make, links_of), "heapwright.*");
  nodes[2].parent = &nodes[1];  // to the original before it
  EXPECT_DEATH((void)compact_copy(&nodes[0], make, links_of), "heapwright.*");
  nodes[2].parent = &nodes[0];  // to the original root
  EXPECT_DEATH((void)compact_copy(&nodes[0], make, links_of), "heapwright.*");
  nodes[2].parent = nullptr;
  nodes[3].parent = &nodes[1];
  if (checks_callers) {
    EXPECT_DEATH((void)compact_copy(&nodes[0], make, links_of), "heapwright.*");
  }
}

}  // namespace
