// A tree with a pool of its own: fast to make, compact to walk, gone in one step.
#include <heapwright/kit.hpp>

#include <cstdio>
#include <tuple>

struct node {
  int key = 0;
  node* left = nullptr;
  node* right = nullptr;
};

int sum(const node* n) { return n == nullptr ? 0 : n->key + sum(n->left) + sum(n->right); }

int main() {
  heapwright::object_pool<node> pool;
  node* root = nullptr;
  for (int i = 0; i < 1000; ++i) {
    const int key = i * 7919 % 1000;
    node** at = &root;
    while (*at != nullptr) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    *at = pool.make(node{.key = key});
  }
  // A copy that lies in memory in the order of the walk.
  heapwright::object_pool<node> compact;
  const node* const copy = heapwright::compact_copy(
      root, [&](const node& n) { return compact.make(n); }, [](node& n) { return std::tie(n.left, n.right); });
  pool.reset();
  std::printf("the sum of the copy is %d\n", sum(copy));
}
