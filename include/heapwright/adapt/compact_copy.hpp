// Copies a linked structure so that it lies in memory in the order in which it will be walked. In a
// structure that has changed for a while each step of a walk misses the cache; in the copy the next
// node is on the same line or on the next one:
//
//   object_pool<node> fresh;
//   node* compact = compact_copy(root, [&](const node& n) { return fresh.make(n); },
//                                [](node& n) { return std::tie(n.left, n.right); });
//
// A node's pointers are links, which lead on and are followed, and at most one back link, which
// leads to the node before it: to the parent in a tree, to the previous node in a list. Both are
// set in the copy. Any other pointer to a node would still lead into the original: a copy that has
// one is refused.
#pragma once

#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <heapwright/core/check.hpp>
#include <heapwright/core/language.hpp>

namespace heapwright {

/// For structures without back links.
struct no_back_link {};

namespace detail {

// Clang has it from version 20 on.
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define HEAPWRIGHT_HAS_CLEAR_PADDING
#endif
#endif

/// Zeroes the padding of a node, where the compiler can: with what a former pointer left in the
/// padding, a small integer beside it reads as an address.
template <class Node>
void clear_padding([[maybe_unused]] std::byte* bytes) {
#ifdef HEAPWRIGHT_HAS_CLEAR_PADDING
  if constexpr (std::is_trivially_copyable_v<Node>) __builtin_clear_padding(reinterpret_cast<Node*>(bytes));
#endif
}

/// Refuses a copy in which a word holds the address of one of these nodes. Only equality is asked
/// for, so that padding that nobody has written is of no matter to Valgrind.
template <class Node, class IsOriginal>
void refuse_pointer_to(const Node& copy, IsOriginal is_original) {
  alignas(Node) std::byte bytes[sizeof(Node)];
  std::memcpy(bytes, reinterpret_cast<const std::byte*>(&copy), sizeof(Node));
  clear_padding<Node>(bytes);
  for (std::size_t at = 0; at + sizeof(void*) <= sizeof(Node); at += sizeof(void*)) {
    const Node* word;
    std::memcpy(&word, bytes + at, sizeof word);
    if (is_original(word))
      die("compact_copy: a pointer in the copy leads into the original", &copy,
          "(every pointer to a node must be a link or the back link)");
  }
}

/// In checked builds: all nodes, to look at each copy when all is done.
template <class Node>
class copied_nodes {
 public:
  void add([[maybe_unused]] const Node* original, [[maybe_unused]] const Node* copy) {
    if constexpr (checks_callers) {
      originals_.insert(original);
      copies_.push_back(copy);
    }
  }

  void refuse_pointers_to_originals() const {
    for (const Node* copy : copies_)
      refuse_pointer_to(*copy, [this](const Node* word) { return originals_.contains(word); });
  }

 private:
  std::unordered_set<const Node*> originals_;
  std::vector<const Node*> copies_;
};

}  // namespace detail

/// A copy of the tree or list at `root`.
///
/// `make(const Node&) -> Node*` makes each node, in depth-first order, the first link first; null
/// ends the copy. `links(Node&)` gives the links as a tuple of references to pointers, in the order
/// of a walk; each node is reached by one link. `back(Node&) -> Node*&` gives the back link; in the
/// copy that of the root is null.
///
/// Null, with what was made so far left to the caller's pool, when make returns null. What make
/// throws, or the growth of the list of open links, goes on to the caller.
///
/// Ends the process with a message when a copy would point to its own original, to the original
/// before it, or to the original root: so structures with other pointers, and rings, are refused.
/// Checked builds refuse a copy that points to any original.
///
/// O(nodes). Keeps four pointers for each open link, of which a list has one.
template <class Node, class Make, class Links, class Back = no_back_link>
[[nodiscard]] Node* compact_copy(const Node* root, Make&& make, Links&& links, Back&& back = {}) {
  if (root == nullptr) return nullptr;
  struct open_link {
    const Node* original;
    Node** where;
    const Node* original_before;  ///< null: it is the root
    Node* copy_before;
  };
  Node* copy_of_root = nullptr;
  detail::copied_nodes<Node> copied;
  std::vector<open_link> open{{root, &copy_of_root, nullptr, nullptr}};
  while (!open.empty()) {
    const open_link link = open.back();
    open.pop_back();
    Node* const copy = make(*link.original);
    if (copy == nullptr) return nullptr;
    *link.where = copy;
    if constexpr (!std::is_same_v<std::remove_cvref_t<Back>, no_back_link>) back(*copy) = link.copy_before;
    detail::refuse_pointer_to(*copy, [&](const Node* word) {
      return word == link.original || (word == link.original_before && word != nullptr) || word == root;
    });
    // The copy's links still lead to the original's children. Pushed last to first, the first comes
    // off next.
    std::apply(
        [&](auto&... next) {
          Node** const all[] = {&next...};
          for (std::size_t i = sizeof...(next); i-- > 0;) {
            if (*all[i] != nullptr) open.push_back({*all[i], all[i], link.original, copy});
          }
        },
        links(*copy));
    copied.add(link.original, copy);
  }
  copied.refuse_pointers_to_originals();
  return copy_of_root;
}

}  // namespace heapwright
