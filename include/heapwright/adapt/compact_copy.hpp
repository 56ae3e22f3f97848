// Copies a linked structure so that it lies in memory in the order in which it will be walked. A structure that has been changed for a while is
// scattered, and each step of a walk is then a miss in the cache; the copy's next node is on the same line or the next one.
//
//   object_pool<node> fresh;
//   node* compact = compact_copy(root, [&](const node& n) { return fresh.make(n); }, [](node& n) { return std::tie(n.left, n.right); });
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include <heapwright/core/language.hpp>

namespace heapwright {

/// A copy of the tree or list at `root`, each node made by `make(const Node&) -> Node*` in depth-first order, the first link first.
/// `links(Node&)` gives the node's links as a tuple of references to pointers, in the order of a walk. Each node must be reached by one link.
/// O(nodes); keeps one pointer per open link, which for a list is one. Null, with what was made so far left to the caller's pool, when make
/// returns null; what make or the growth of that stack throws goes on to the caller.
template <class Node, class Make, class Links>
[[nodiscard]] Node* compact_copy(const Node* root, Make&& make, Links&& links) {
  if (root == nullptr) return nullptr;
  Node* copy_of_root = nullptr;
  struct open_link {
    const Node* original;
    Node** where;
  };
  std::vector<open_link> open{{root, &copy_of_root}};
  while (!open.empty()) {
    const auto [original, where] = open.back();
    open.pop_back();
    Node* const copy = make(*original);
    if (copy == nullptr) return nullptr;
    *where = copy;
    // The copy's links still point to the original's children. Pushed last to first, the first comes off next.
    std::apply(
        [&](auto&... link) {
          Node** const all[] = {&link...};
          for (std::size_t i = sizeof...(link); i-- > 0;) {
            if (*all[i] != nullptr) open.push_back({*all[i], all[i]});
          }
        },
        links(*copy));
  }
  return copy_of_root;
}

}  // namespace heapwright
