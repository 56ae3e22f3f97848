// Walks a best-fit heap from the inside and compares everything that it states twice: tags and
// neighbours, lists and blocks, heights and subtrees, figures and bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <heapwright/allocator/best_fit.hpp>

namespace heapwright {

template <class Heap>
struct best_fit_audit {
  /// What is wrong, or null.
  static const char* fault(const Heap& h) {
    const auto& blocks = h.blocks_;
    const bool merged = blocks.merges_at_once || !blocks.unmerged_;
    std::size_t free_blocks = 0, live = 0, tiny_live = 0;
    bool after_free = false;
    std::uintptr_t at = blocks.begin_;
    while (at != blocks.end_) {
      if (at > blocks.end_) return "blocks do not tile the range";
      const tagged_block* const b = tagged_block::at(at);
      if (b->size() < blocks.smallest || b->size() % Heap::granule != 0) return "a size that no block has";
      if (!b->is_sealed()) return "a tag with a wrong seal";
      if (b->follows_free() != (blocks.merges_at_once && after_free)) return "follows_free is wrong";
      if (b->follows_free() && address_of(b->preceding()) + b->preceding()->size() != at)
        return "the size at the end is wrong";
      if (merged && after_free && b->is_free()) return "free neighbours";
      after_free = b->is_free();
      (after_free ? free_blocks : live) += 1;
      at += b->size();
    }
    if (merged && after_free) return "a free block reaches the untouched space";
    if (h.tiny_.begin() < blocks.end_ || h.tiny_.begin() > h.limit_) return "tiny pages and blocks overlap";

    std::size_t listed = in_slots(blocks.slots_);
    const std::size_t in_tree = subtree(blocks.tree_.root_, nullptr, 0, SIZE_MAX);
    if (listed == wrong) return "the slots are wrong";
    if (in_tree == wrong) return "the tree is wrong";
    if (listed + in_tree != free_blocks) return "a free block is in no list, or in two";
    if (const char* what = tiny_fault(h.tiny_, tiny_live)) return what;

    const best_fit_stats s = h.stats();
    if (s.in_use + s.rounding + s.headers + s.available != s.held || s.held != h.limit_ - blocks.begin_)
      return "figures do not add up";
    const std::size_t pages = (h.limit_ - h.tiny_.begin()) / tiny_pages::page_bytes;
    if (s.headers != live * tagged_block::tag_bytes +
                         pages * (tiny_pages::page_bytes - tiny_pages::page::blocks * tiny_pages::block_bytes))
      return "headers are counted wrong";
    std::size_t visited = 0;
    h.for_each_live([&](const void* p, std::size_t) { visited += h.owns(p); });
    if (visited != live + tiny_live) return "for_each_live misses blocks, or shows too many";
    return nullptr;
  }

  /// Bytes of the range that are not untouched.
  static std::size_t extent(const Heap& h) { return h.blocks_.end_ - h.blocks_.begin_ + (h.limit_ - h.tiny_.begin()); }

 private:
  static constexpr std::size_t wrong = SIZE_MAX;

  template <std::size_t Step, std::size_t Largest>
  static std::size_t in_slots(const size_slots<Step, Largest>& slots) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < slots.count; ++i) {
      if ((slots.slots_[i] != nullptr) != slots.occupied_.contains(i)) return wrong;
      const tagged_block* before = nullptr;
      for (const tagged_block* b = slots.slots_[i]; b != nullptr; before = b, b = b->next, ++n) {
        if (!b->is_free() || b->size() != (i + 1) * Step) return wrong;
        if (before != nullptr && b->prev != before) return wrong;
      }
    }
    std::size_t found = 0;
    for (std::size_t i = 0; i < slots.count && (i = slots.occupied_.first_from(i)) < slots.count; ++i) ++found;
    for (std::size_t i = 0; i < slots.count; ++i) found -= slots.slots_[i] != nullptr;
    if (found != 0) return wrong;
    return n;
  }

  /// Blocks in the subtree, all of sizes between the bounds. The recursion is as deep as the tree.
  static std::size_t subtree(const size_tree::node* n, const size_tree::node* parent, std::size_t above,
                             std::size_t below) {
    if (n == nullptr) return 0;
    const std::size_t size = n->size();
    if (n->parent != parent || n->prev != nullptr || size <= above || size >= below) return wrong;
    const std::size_t heights[] = {size_tree::height(n->child[0]), size_tree::height(n->child[1])};
    if (heights[0] > heights[1] + 1 || heights[1] > heights[0] + 1 || n->height != std::max(heights[0], heights[1]) + 1)
      return wrong;
    const std::size_t smaller = subtree(n->child[0], n, above, size), larger = subtree(n->child[1], n, size, below);
    if (smaller == wrong || larger == wrong) return wrong;
    std::size_t equal = 0;
    const tagged_block* before = nullptr;
    for (const tagged_block* b = n; b != nullptr; before = b, b = b->next, ++equal) {
      if (!b->is_free() || b->size() != size || b->prev != before) return wrong;
    }
    return smaller + equal + larger;
  }

  static const char* tiny_fault(const tiny_pages& tiny, std::size_t& live) {
    std::size_t with_free = 0;
    for (std::uintptr_t at = tiny.begin_; at != tiny.end_; at += tiny_pages::page_bytes) {
      const std::uint64_t free = tiny_pages::page_at(at)->free;
      if (at == tiny.begin_ && free == tiny_pages::page::all) return "an empty tiny page was kept";
      live += tiny_pages::page::blocks - static_cast<std::size_t>(std::popcount(free));
      with_free += free != 0;
    }
    std::size_t listed = 0;
    const tiny_pages::page* before = nullptr;
    for (const tiny_pages::page* p = tiny.listed_; p != nullptr; before = p, p = p->next, ++listed) {
      if (p->free == 0 || (before != nullptr && p->prev != before)) return "the list of tiny pages is wrong";
    }
    return listed == with_free ? nullptr : "a tiny page with free blocks is not listed";
  }
};

template <best_fit_plan Plan>
const char* fault_in(const best_fit<Plan>& h) {
  return best_fit_audit<best_fit<Plan>>::fault(h);
}

}  // namespace heapwright
