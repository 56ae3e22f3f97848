// Free blocks of large sizes, in a tree ordered by size that lies in the blocks themselves: best
// fit in O(log n).
//
// An AVL tree (Adelson-Velsky and Landis, 1962). Blocks of equal size hang as a list on the one
// that is in the tree. Invariants: heights of siblings differ by at most one; a block is in the
// tree exactly if its prev is null; the blocks behind it have its size, and their tree fields mean
// nothing.
#pragma once

#include <algorithm>
#include <cstddef>

#include <heapwright/allocator/tagged_block.hpp>

namespace heapwright {

/// Blocks of at least `smallest_block` bytes. insert, remove and smallest_from are O(log n) at
/// worst, n being the number of different sizes.
class size_tree {
  struct node : tagged_block {
    hidden<node*> child[2];  ///< smaller, larger
    hidden<node*> parent;
    hidden<std::size_t> height;
  };

 public:
  static constexpr std::size_t smallest_block = sizeof(node) + sizeof(std::size_t);

  [[gnu::noinline]] void insert(tagged_block* b, std::size_t size) noexcept {
    node* const n = static_cast<node*>(b);
    node* parent = nullptr;
    bool side = false;
    for (node* at = root_; at != nullptr; at = at->child[side]) {
      const std::size_t at_size = at->size();
      if (at_size == size) {
        hang(at, n);
        return;
      }
      parent = at;
      side = at_size < size;
    }
    n->next = nullptr;
    n->prev = nullptr;
    n->child[0] = nullptr;
    n->child[1] = nullptr;
    n->height = 1;
    n->parent = parent;
    if (parent == nullptr) {
      root_ = n;
    } else {
      parent->child[side] = n;
      rebalance(parent);
    }
  }

  [[gnu::noinline]] void remove(tagged_block* b) noexcept {
    node* const n = static_cast<node*>(b);
    node* const next = static_cast<node*>(static_cast<tagged_block*>(n->next));
    if (n->prev != nullptr) {
      n->prev->next = next;
      if (next != nullptr) next->prev = n->prev;
    } else if (next != nullptr) {
      next->prev = nullptr;
      take_place(n, next);
    } else {
      remove_node(n);
    }
  }

  /// A block of the smallest size >= `size` that there is, or null; it stays.
  [[nodiscard]] tagged_block* smallest_from(std::size_t size) const noexcept {
    node* best = nullptr;
    for (node* at = root_; at != nullptr;) {
      const bool too_small = at->size() < size;
      if (!too_small) best = at;
      at = at->child[too_small];
    }
    if (best == nullptr) return nullptr;
    // One that hangs on it leaves the tree as it is.
    tagged_block* const hanging = best->next;
    return hanging != nullptr ? hanging : best;
  }

  void clear() noexcept { root_ = nullptr; }

 private:
  template <class Heap>
  friend struct best_fit_audit;

  static std::size_t height(const node* n) noexcept { return n == nullptr ? 0 : std::size_t{n->height}; }

  static void hang(node* at, node* n) noexcept {
    tagged_block* const second = at->next;
    n->next = second;
    n->prev = at;
    at->next = n;
    if (second != nullptr) second->prev = n;
  }

  static void set_child(node* parent, bool side, node* child) noexcept {
    parent->child[side] = child;
    if (child != nullptr) child->parent = parent;
  }

  /// What pointed down to `n` points to `other`, which may be null.
  void replace(node* n, node* other) noexcept {
    node* const parent = n->parent;
    if (parent == nullptr) {
      root_ = other;
      if (other != nullptr) other->parent = nullptr;
    } else {
      set_child(parent, parent->child[1] == n, other);
    }
  }

  /// `other` takes the place of `n` with all its links.
  void take_place(node* n, node* other) noexcept {
    replace(n, other);
    set_child(other, 0, n->child[0]);
    set_child(other, 1, n->child[1]);
    other->height = n->height;
  }

  void remove_node(node* n) noexcept {
    node* const smaller = n->child[0];
    node* const larger = n->child[1];
    if (smaller == nullptr || larger == nullptr) {
      node* const parent = n->parent;
      replace(n, smaller != nullptr ? smaller : larger);
      rebalance(parent);
      return;
    }
    node* successor = larger;
    while (successor->child[0] != nullptr) successor = successor->child[0];
    node* const parent = successor->parent;
    replace(successor, successor->child[1]);
    take_place(n, successor);
    rebalance(parent == n ? successor : parent);
  }

  /// Restores the heights from `n` upwards, as far as they changed.
  void rebalance(node* n) noexcept {
    while (n != nullptr) {
      const std::size_t before = n->height;
      n = balanced(n);
      if (n->height == before) return;
      n = n->parent;
    }
  }

  /// Restores the height of `n`, whose subtrees are right; returns what is in its place then.
  node* balanced(node* n) noexcept {
    const std::size_t heights[2] = {height(n->child[0]), height(n->child[1])};
    if (heights[0] <= heights[1] + 1 && heights[1] <= heights[0] + 1) {
      n->height = std::max(heights[0], heights[1]) + 1;
      return n;
    }
    const bool heavy = heights[1] > heights[0];
    node* const child = n->child[heavy];
    if (height(child->child[heavy]) < height(child->child[!heavy])) lift(child, !heavy);
    return lift(n, heavy);
  }

  /// Rotation: the child on that side comes up, n goes down to the other side. Returns the child.
  node* lift(node* n, bool side) noexcept {
    node* const child = n->child[side];
    replace(n, child);
    set_child(n, side, child->child[!side]);
    set_child(child, !side, n);
    n->height = std::max(height(n->child[0]), height(n->child[1])) + 1;
    child->height = std::max(height(child->child[0]), height(child->child[1])) + 1;
    return child;
  }

  node* root_ = nullptr;
};

}  // namespace heapwright
