// S3: binary search trees of 24-byte nodes.
//  (a) a tree is made from size/2 random keys, changed `size` times (a random key goes in or out),
//      and dropped.
//  (b) many small trees, about 250 nodes each, are built and pruned, and then looked up in. Five
//      builds, each with the same work:
//        1  malloc
//        2  a copy of 1, by malloc
//        3  pool
//        4  a compact copy of 1 in a pool
//        5  a copy of 1 in a pool whose list was scrambled
//      Timed is a look-up, in the trees in turn.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "memories.hpp"
#include "rows.hpp"
#include "timing.hpp"

namespace bench {
namespace {

struct node {
  node* left = nullptr;
  node* right = nullptr;
  std::uint32_t key;
};
static_assert(sizeof(node) == 24);

using random_engine = std::minstd_rand;

template <class Memory>
void clear(node* n, Memory& memory) {
  if (n == nullptr) return;
  clear(n->left, memory);
  clear(n->right, memory);
  memory.destroy(n);
}

// Each memory drops a whole tree in the way that it has for that.

struct by_malloc_nodes {
  node* make(const node& n) { return new (std::malloc(sizeof(node))) node(n); }
  void destroy(node* n) { std::free(n); }
  void drop(node* root) { clear(root, *this); }
};

struct by_pool : heapwright::object_pool<node> {
  void drop(node*) { reset(); }
};

struct by_pmr_nodes {
  std::pmr::unsynchronized_pool_resource memory;
  node* make(const node& n) { return new (memory.allocate(sizeof(node), alignof(node))) node(n); }
  void destroy(node* n) { memory.deallocate(n, sizeof(node), alignof(node)); }
  void drop(node*) { memory.release(); }
};

struct by_boost_nodes {
  boost::pool<> memory{sizeof(node)};
  node* make(const node& n) { return new (memory.malloc()) node(n); }
  void destroy(node* n) { memory.free(n); }
  void drop(node*) { memory.purge_memory(); }
};

template <class Memory>
void insert(node*& root, std::uint32_t key, Memory& memory) {
  node** at = &root;
  while (*at != nullptr) {
    if ((*at)->key == key) return;
    at = key < (*at)->key ? &(*at)->left : &(*at)->right;
  }
  *at = memory.make(node{nullptr, nullptr, key});
}

template <class Memory>
void erase(node*& root, std::uint32_t key, Memory& memory) {
  node** at = &root;
  while (*at != nullptr && (*at)->key != key) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
  node* const gone = *at;
  if (gone == nullptr) return;
  if (gone->left == nullptr || gone->right == nullptr) {
    *at = gone->left != nullptr ? gone->left : gone->right;
  } else {
    node** next = &gone->right;
    while ((*next)->left != nullptr) next = &(*next)->left;
    node* const heir = *next;
    *next = heir->right;
    heir->left = gone->left;
    heir->right = gone->right;
    *at = heir;
  }
  memory.destroy(gone);
}

std::uint32_t depth_of(const node* n, std::uint32_t key) {
  std::uint32_t depth = 0;
  for (; n != nullptr && n->key != key; ++depth) n = key < n->key ? n->left : n->right;
  return depth;
}

template <class Memory>
node* make_and_change(std::int64_t size, Memory& memory, random_engine& random) {
  node* root = nullptr;
  const auto key = [&] { return static_cast<std::uint32_t>(random() % static_cast<std::uint32_t>(size)); };
  for (std::int64_t i = 0; i < size / 2; ++i) insert(root, key(), memory);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::uint32_t k = key();
    random() % 2 == 0 ? insert(root, k, memory) : erase(root, k, memory);
  }
  return root;
}

template <class Memory>
void rows_of_one_tree(const char* memory) {
  for (const std::int64_t size : {400, 1000, 4000, 10'000, 40'000, 100'000, 400'000}) {
    add("S3", "a tree made and changed", memory, size, 100'000 / size, [] {
      return [m = std::make_shared<Memory>()](std::int64_t n) {
        random_engine random(1);
        return seconds([&] {
          node* const root = make_and_change(n, *m, random);
          benchmark::DoNotOptimize(root);
          m->drop(root);
        });
      };
    });
  }
}

/// A forest and whatever its memory is.
struct forest {
  virtual ~forest() = default;
  std::vector<node*> roots;
};

template <class Memory>
struct forest_in : forest {
  Memory memory;
  ~forest_in() override {
    for (node* root : roots) clear(root, memory);
  }
};

/// Each tree grows to 250 nodes after ten times as many changes, all trees in turn.
template <class Memory>
std::shared_ptr<forest_in<Memory>> grown(std::int64_t trees) {
  auto f = std::make_shared<forest_in<Memory>>();
  random_engine random(7);
  for (std::int64_t t = 0; t < trees; ++t) f->roots.push_back(make_and_change(500, f->memory, random));
  for (int change = 0; change < 2000; ++change) {
    for (node*& root : f->roots) {
      const auto key = static_cast<std::uint32_t>(random() % 500);
      random() % 2 == 0 ? insert(root, key, f->memory) : erase(root, key, f->memory);
    }
  }
  return f;
}

template <class Memory>
void copy_into(const forest& original, forest_in<Memory>& copy) {
  for (const node* root : original.roots) {
    copy.roots.push_back(heapwright::compact_copy(
        root, [&](const node& n) { return copy.memory.make(n); }, [](node& n) { return std::tie(n.left, n.right); }));
  }
}

void scramble(by_pool& pool, std::int64_t nodes) {
  std::vector<node*> all(static_cast<std::size_t>(nodes));
  for (node*& n : all) n = pool.make(node{});
  std::shuffle(all.begin(), all.end(), random_engine(3));
  for (node* n : all) pool.destroy(n);
}

constexpr int lookups_at_once = 20'000;

double lookups(const forest& f) {
  random_engine random(5);
  std::uint32_t sum = 0;
  const double time = seconds([&] {
    for (int i = 0; i < lookups_at_once; ++i) {
      const auto key = static_cast<std::uint32_t>(random() % 500);
      sum += depth_of(f.roots[random() % f.roots.size()], key);
    }
  });
  benchmark::DoNotOptimize(sum);
  return time;
}

void rows_of_many_trees() {
  const auto row = [](const char* build, std::shared_ptr<forest> (*make)(std::int64_t)) {
    for (const std::int64_t trees : {1, 50, 200, 500, 950}) {
      add(
          "S3", "look-up in many trees", build, trees, 5,
          [make] {
            return [make, f = std::shared_ptr<forest>()](std::int64_t n) mutable {
              if (f == nullptr) f = make(n);
              return lookups(*f);
            };
          },
          lookups_at_once);
    }
  };
  row("malloc", [](std::int64_t n) -> std::shared_ptr<forest> { return grown<by_malloc_nodes>(n); });
  row("copy by malloc", [](std::int64_t n) -> std::shared_ptr<forest> {
    auto copy = std::make_shared<forest_in<by_malloc_nodes>>();
    copy_into(*grown<by_malloc_nodes>(n), *copy);
    return copy;
  });
  row("pool", [](std::int64_t n) -> std::shared_ptr<forest> { return grown<by_pool>(n); });
  row("compact copy in a pool", [](std::int64_t n) -> std::shared_ptr<forest> {
    auto copy = std::make_shared<forest_in<by_pool>>();
    copy_into(*grown<by_malloc_nodes>(n), *copy);
    return copy;
  });
  row("copy in a scrambled pool", [](std::int64_t n) -> std::shared_ptr<forest> {
    auto copy = std::make_shared<forest_in<by_pool>>();
    scramble(copy->memory, n * 300);
    copy_into(*grown<by_malloc_nodes>(n), *copy);
    return copy;
  });
}

}  // namespace

void add_trees() {
  rows_of_one_tree<by_malloc_nodes>("malloc");
  rows_of_one_tree<by_pool>("pool");
  rows_of_one_tree<by_pmr_nodes>("pmr unsynchronized_pool");
  rows_of_one_tree<by_boost_nodes>("boost pool");
  rows_of_many_trees();
}

}  // namespace bench
