// Owned objects and compact copies.
#include <heapwright/adapt/compact_copy.hpp>
#include <heapwright/adapt/unique.hpp>
#include <heapwright/allocator/object_pool.hpp>
#include <heapwright/allocator/stack_arena.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/strict_source.hpp"

namespace heapwright {
namespace {

using testing::strict_source;

struct noisy {
  static inline int alive = 0;
  static inline int limit = 1 << 30;
  std::string text;
  explicit noisy(std::string t = "") : text(std::move(t)) {
    if (alive == limit) throw std::runtime_error("enough");
    ++alive;
  }
  noisy(const noisy&) = delete;
  ~noisy() { --alive; }
};

TEST(Unique, OwnsAnObject) {
  strict_source source;
  {
    auto p = make_unique<noisy>(source, "one");
    EXPECT_EQ(p->text, "one");
    EXPECT_EQ(source.held(), sizeof(noisy));
    auto q = std::move(p);
    EXPECT_EQ(noisy::alive, 1);
  }
  EXPECT_EQ(noisy::alive, 0);
  EXPECT_EQ(source.held(), 0U);
}

TEST(Unique, OwnsAnArray) {
  strict_source source;
  {
    auto p = make_unique<noisy[]>(source, 10);
    EXPECT_EQ(noisy::alive, 10);
    p[9].text = "the last";
    auto numbers = make_unique<int[]>(source, 5);
    EXPECT_EQ(numbers[4], 0);
  }
  EXPECT_EQ(noisy::alive, 0);
}

TEST(Unique, AThrowingConstructorLosesNothing) {
  strict_source source;
  noisy::limit = 3;
  EXPECT_THROW((void)make_unique<noisy[]>(source, 10), std::runtime_error);
  noisy::limit = 0;
  EXPECT_THROW((void)make_unique<noisy>(source), std::runtime_error);
  noisy::limit = 1 << 30;
  EXPECT_EQ(noisy::alive, 0);
  EXPECT_EQ(source.held(), 0U);
  source.allow(0);
  EXPECT_THROW((void)make_unique<noisy>(source), std::bad_alloc);
}

TEST(Unique, IsAPointerWhereTheAllocatorHasNoState) {
  upstream_malloc memory;
  auto p = make_unique<int>(memory, 7);
  EXPECT_EQ(*p, 7);
  static_assert(sizeof(p) == sizeof(void*));
}

struct node {
  int key;
  node* left = nullptr;
  node* right = nullptr;
};

void insert(node*& root, node* fresh) {
  node** at = &root;
  while (*at != nullptr) at = fresh->key < (*at)->key ? &(*at)->left : &(*at)->right;
  *at = fresh;
}

void walk(const node* n, auto&& visit) {
  if (n == nullptr) return;
  visit(*n);
  walk(n->left, visit);
  walk(n->right, visit);
}

TEST(CompactCopy, LiesInTheOrderOfTheWalk) {
  object_pool<node> scattered, fresh;
  std::vector<int> keys(3000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int>(i);
  std::shuffle(keys.begin(), keys.end(), std::minstd_rand(1));
  node* root = nullptr;
  for (int key : keys) insert(root, scattered.make(key));
  const node* const copy = compact_copy(
      root, [&](const node& n) { return fresh.make(n); }, [](node& n) { return std::tie(n.left, n.right); });
  std::vector<int> was, is;
  walk(root, [&](const node& n) { was.push_back(n.key); });
  std::size_t steps_of_one = 0;
  const node* before = copy - 1;
  walk(copy, [&](const node& n) {
    is.push_back(n.key);
    EXPECT_TRUE(fresh.owns(&n));
    steps_of_one += &n == before + 1 ? 1 : 0;
    before = &n;
  });
  EXPECT_EQ(was, is);
  EXPECT_GE(steps_of_one, is.size() - 5) << "but for the steps from one chunk to the next";
}

TEST(CompactCopy, LongListsAndNothing) {
  std::vector<node> list(200'000);
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i].right = &list[i + 1];
  object_pool<node> fresh;
  const auto make = [&](const node& n) { return fresh.make(n); };
  const auto next = [](node& n) { return std::tie(n.right); };
  std::size_t length = 0;
  for (const node* n = compact_copy(&list.front(), make, next); n != nullptr; n = n->right) ++length;
  EXPECT_EQ(length, list.size());
  EXPECT_EQ(compact_copy<node>(nullptr, make, next), nullptr);
}

struct linked_both_ways {
  int value;
  linked_both_ways* next;
  linked_both_ways* previous;
};

/// A list of n nodes, in an order of its own.
std::vector<linked_both_ways> doubly_linked(std::size_t n) {
  std::vector<linked_both_ways> list(n);
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  std::shuffle(order.begin() + 1, order.end(), std::minstd_rand(1));
  for (std::size_t i = 0; i < n; ++i) {
    list[order[i]] = {static_cast<int>(i), i + 1 < n ? &list[order[i + 1]] : nullptr,
                      i > 0 ? &list[order[i - 1]] : nullptr};
  }
  return list;
}

constexpr auto next_of = [](linked_both_ways& n) { return std::tie(n.next); };
constexpr auto previous_of = [](linked_both_ways& n) -> linked_both_ways*& { return n.previous; };

TEST(CompactCopy, SetsTheBackLinksOfADoublyLinkedList) {
  const auto list = doubly_linked(1000);
  object_pool<linked_both_ways> fresh;
  const auto* n = compact_copy(
      list.data(), [&](const linked_both_ways& from) { return fresh.make(from); }, next_of, previous_of);
  EXPECT_EQ(n->previous, nullptr);
  int length = 1;
  for (; n->next != nullptr; n = n->next, ++length) {
    EXPECT_TRUE(fresh.owns(n) && fresh.owns(n->next));
    ASSERT_EQ(n->next->previous, n);
    ASSERT_EQ(n->next->value, n->value + 1);
  }
  EXPECT_EQ(length, 1000);
}

struct with_parent {
  with_parent* children[2];
  with_parent* parent;
  int key;
};

TEST(CompactCopy, SetsTheParentsOfATree) {
  std::vector<with_parent> tree(127);
  for (int i = 0; i < 127; ++i) {
    tree[static_cast<std::size_t>(i)].key = i;
    if (i == 0) continue;
    with_parent& parent = tree[static_cast<std::size_t>((i - 1) / 2)];
    tree[static_cast<std::size_t>(i)].parent = &parent;
    parent.children[(i - 1) % 2] = &tree[static_cast<std::size_t>(i)];
  }
  object_pool<with_parent> fresh;
  const with_parent* const copy = compact_copy(
      tree.data(), [&](const with_parent& from) { return fresh.make(from); },
      [](with_parent& n) { return std::tie(n.children[0], n.children[1]); },
      [](with_parent& n) -> with_parent*& { return n.parent; });
  int visited = 0;
  const auto visit = [&](const auto& self, const with_parent* n, const with_parent* parent) -> void {
    if (n == nullptr) return;
    ++visited;
    EXPECT_TRUE(fresh.owns(n));
    EXPECT_EQ(n->parent, parent);
    EXPECT_EQ(parent == nullptr ? 0 : (n->key - 1) / 2, parent == nullptr ? n->key : parent->key);
    self(self, n->children[0], n);
    self(self, n->children[1], n);
  };
  visit(visit, copy, nullptr);
  EXPECT_EQ(visited, 127);
}

TEST(CompactCopyDeathTest, RefusesPointersThatAreNotStated) {
  constexpr const char* message = "heapwright: compact_copy: a pointer in the copy leads into the original: 0x";
  object_pool<linked_both_ways> fresh;
  const auto make = [&](const linked_both_ways& from) { return fresh.make(from); };
  const auto list = doubly_linked(10);
  EXPECT_DEATH(static_cast<void>(compact_copy(list.data(), make, next_of)), message) << "back links";
  auto ring = doubly_linked(10);
  for (auto& n : ring) {
    n.previous = nullptr;
    if (n.next == nullptr) n.next = ring.data();
  }
  EXPECT_DEATH(static_cast<void>(compact_copy(ring.data(), make, next_of)), message) << "a ring";
  auto to_the_last = doubly_linked(10);
  for (auto& n : to_the_last) n.previous = nullptr;
  auto* last = to_the_last.data();
  while (last->next != nullptr) last = last->next;
  to_the_last[0].next->previous = last;
  if constexpr (checks_callers) {
    EXPECT_DEATH(static_cast<void>(compact_copy(to_the_last.data(), make, next_of)), message) << "any other pointer";
  }
}

#ifdef HEAPWRIGHT_HAS_CLEAR_PADDING
TEST(CompactCopy, PaddingIsNoPointer) {
  struct numbered {
    std::uint32_t number;  // and four bytes of padding
    numbered* next;
  };
  alignas(numbered) std::array<std::byte, 2 * sizeof(numbered)> memory;
  auto* const nodes = reinterpret_cast<numbered*>(memory.data());
  if (address_of(nodes) <= UINT32_MAX) GTEST_SKIP() << "the number alone is such an address";
  // The bytes of the first node's number and padding are its own address.
  std::memcpy(memory.data(), &nodes, sizeof nodes);
  nodes[0].next = nullptr;
  numbered* const copy = compact_copy(
      nodes, [&](const numbered& from) { return static_cast<numbered*>(std::memcpy(&nodes[1], &from, sizeof from)); },
      [](numbered& n) { return std::tie(n.next); });
  EXPECT_EQ(copy->number, nodes[0].number);
}
#endif

TEST(CompactCopy, NullWhenThePoolIsExhausted) {
  std::vector<node> list(10'000);
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i].right = &list[i + 1];
  strict_source source;
  source.allow(2);
  object_pool<node, upstream<strict_source>> fresh{source};
  EXPECT_EQ(compact_copy(
                &list.front(), [&](const node& n) { return fresh.make(n); }, [](node& n) { return std::tie(n.right); }),
            nullptr);
}

}  // namespace
}  // namespace heapwright
