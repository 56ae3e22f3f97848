// What the documentation says of every heap, as a model that a random program is run against.
//
// States the specification (docs/recipes.md, docs/concepts.md, the docstrings of heap.hpp). Written
// without the code. A recipe differs from another in what `expectations` says, and in nothing else.
#ifndef HEAPWRIGHT_TESTS_FROM_DOCS_HEAP_MODEL_HPP
#define HEAPWRIGHT_TESTS_FROM_DOCS_HEAP_MODEL_HPP

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <heapwright/heap.hpp>

namespace from_docs {

using heapwright::KiB;
using heapwright::layout;
using heapwright::MiB;

/// Any heap, so that the model is compiled once.
struct any_heap {
  virtual ~any_heap() = default;
  virtual void* allocate(std::size_t size) = 0;
  virtual void* allocate(layout l) = 0;
  virtual void* allocate_zeroed(std::size_t size) = 0;
  virtual void deallocate(void* p) = 0;
  virtual void deallocate(void* p, layout l) = 0;
  virtual void* reallocate(void* p, std::size_t size) = 0;
  virtual std::size_t usable_size(const void* p) = 0;
  virtual bool owns(const void* p) = 0;
  virtual std::size_t trim() = 0;
  virtual heapwright::heap_statistics statistics() = 0;
  virtual std::vector<std::pair<const std::byte*, std::size_t>> blocks() = 0;
};

template <class Heap>
class heap_under_test : public any_heap {
 public:
  explicit heap_under_test(Heap& h) : heap_(h) {}
  void* allocate(std::size_t size) override { return heap_.allocate(size); }
  void* allocate(layout l) override { return heap_.allocate(l); }
  void* allocate_zeroed(std::size_t size) override { return heap_.allocate_zeroed(size); }
  void deallocate(void* p) override { heap_.deallocate(p); }
  void deallocate(void* p, layout l) override { heap_.deallocate(p, l); }
  void* reallocate(void* p, std::size_t size) override { return heap_.reallocate(p, size); }
  std::size_t usable_size(const void* p) override { return heap_.usable_size(p); }
  bool owns(const void* p) override { return heap_.owns(p); }
  std::size_t trim() override { return heap_.trim(); }
  heapwright::heap_statistics statistics() override { return heap_.statistics(); }
  std::vector<std::pair<const std::byte*, std::size_t>> blocks() override {
    // f must not call this heap, and std::vector calls the process's malloc: that is another.
    std::vector<std::pair<const std::byte*, std::size_t>> all;
    EXPECT_TRUE(heap_.for_each_block(
        [&](const void* block, std::size_t bytes) { all.emplace_back(static_cast<const std::byte*>(block), bytes); }));
    return all;
  }

 private:
  Heap& heap_;
};

struct expectations {
  bool notes_requests = false;
  bool aligns_to_8 = false;  // classes.exact has odd multiples of 8
  std::size_t largest = 2 * MiB;
  bool may_be_exhausted = false;
};

inline std::uint64_t sum_of_parts(const heapwright::heap_statistics& s) {
  return s.in_use + s.in_caches + s.free_in_spans + s.free_resident + s.free_decommitted;
}

class random_program {
 public:
  random_program(any_heap& heap, const expectations& e, unsigned seed) : heap_(heap), expect_(e), random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
      step();
      if (i % 500 == 499) look_at_everything();
    }
    look_at_everything();
    while (!live_.empty()) free_one();
    look_at_everything();
    EXPECT_EQ(heap_.statistics().in_use, 0u);
  }

 private:
  struct block {
    std::size_t size;
    std::size_t alignment;
    std::uint8_t content;
  };
  using live_blocks = std::map<std::byte*, block>;

  std::size_t below(std::size_t n) { return random_() % n; }

  std::size_t any_size() {
    switch (below(16)) {
      case 0: return expect_.notes_requests ? 1 : 0;
      case 1: return 1;
      case 2: return below(expect_.largest) + 1;
      case 3:
      case 4: return std::min<std::size_t>(below(300 * KiB) + 1, expect_.largest);
      case 5:
      case 6:
      case 7: return below(20 * KiB) + 1;
      default: return below(700) + 1;
    }
  }

  void step() {
    const std::size_t action = below(100);
    if (live_.size() > 400 || action >= 70) return free_one();
    if (action < 25) return got(heap_.allocate(any_size_kept()), 16, false);
    if (action < 40) {
      const std::size_t alignment = std::size_t{1} << below(17);  // to 64 KiB
      return got(heap_.allocate(layout{any_size_kept(), alignment}), alignment, false);
    }
    if (action < 50) return got(heap_.allocate_zeroed(any_size_kept()), 16, true);
    change_size();
  }

  std::size_t any_size_kept() { return size_ = any_size(); }

  void got(void* memory, std::size_t alignment, bool is_zeroed) {
    if (memory == nullptr) {
      EXPECT_TRUE(expect_.may_be_exhausted) << size_;
      return;
    }
    auto* const p = static_cast<std::byte*>(memory);
    look_at_place(p, alignment);
    for (std::size_t i = 0; is_zeroed && i < size_; ++i)
      ASSERT_EQ(p[i], std::byte{0}) << "byte " << i << " of " << size_;
    const block b{size_, alignment, static_cast<std::uint8_t>(random_())};
    live_[p] = b;
    fill(p, b);
  }

  void look_at_place(std::byte* p, std::size_t alignment) {
    // "aligned to l.alignment"; "for sizes that are no multiple of 16 themselves" 8 where the
    // recipe says so
    const std::size_t least =
        expect_.aligns_to_8 && size_ % 16 != 0 && alignment <= 16 ? 8 : std::max<std::size_t>(alignment, 16);
    const bool is_plain = alignment <= 16;
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % (is_plain ? least : alignment), 0u) << size_ << " at " << alignment;
    const std::size_t usable = heap_.usable_size(p);
    ASSERT_GE(usable, size_);  // "bytes that may be used behind p, >= the size asked for"
    ASSERT_TRUE(heap_.owns(p));
    // Blocks do not overlap, with all that may be used of them.
    const auto next = live_.lower_bound(p);
    if (next != live_.end()) {
      ASSERT_LE(static_cast<const void*>(p + std::max<std::size_t>(usable, 1)), next->first);
    }
    if (next != live_.begin()) {
      const auto& [q, b] = *std::prev(next);
      ASSERT_LE(static_cast<const void*>(q + std::max<std::size_t>(heap_.usable_size(q), 1)), p);
    }
  }

  /// All that may be used is used.
  void fill(std::byte* p, const block& b) { std::memset(p, b.content, heap_.usable_size(p)); }

  void look_at_content(const std::byte* p, const block& b, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += i < 64 || i + 64 > bytes ? 1 : 61)
      ASSERT_EQ(static_cast<std::uint8_t>(p[i]), b.content) << "byte " << i << " of " << b.size;
  }

  live_blocks::iterator any_block() {
    auto i = live_.lower_bound(reinterpret_cast<std::byte*>(near_));
    if (i == live_.end()) i = live_.begin();
    std::advance(
        i, below(std::min<std::size_t>(live_.size(), 8)) % static_cast<std::size_t>(std::distance(i, live_.end())));
    return i;
  }

  void free_one() {
    if (live_.empty()) return;
    const auto i = any_block();
    const auto [p, b] = *i;
    near_ = reinterpret_cast<std::uintptr_t>(p) + 977 * below(1000);
    look_at_content(p, b, heap_.usable_size(p));
    live_.erase(i);
    below(2) == 0 ? heap_.deallocate(p) : heap_.deallocate(p, layout{b.size, b.alignment});
  }

  void change_size() {
    size_ = std::max<std::size_t>(any_size(), 1);
    if (live_.empty() || below(10) == 0) return got(heap_.reallocate(nullptr, size_), 16, false);  // "p may be null"
    const auto i = any_block();
    const auto [p, b] = *i;
    const std::size_t was_usable = heap_.usable_size(p);
    void* const changed = heap_.reallocate(p, size_);
    if (changed == nullptr) {
      ASSERT_TRUE(expect_.may_be_exhausted);
      look_at_content(p, b, was_usable);  // "Null: no memory, p is as it was"
      return;
    }
    // "with the contents of p": what was asked for, as much of it as there is room for.
    look_at_content(static_cast<std::byte*>(changed), b, std::min(b.size, size_));
    live_.erase(i);
    got(changed, 16, false);
  }

  void look_at_everything() {
    const auto s = heap_.statistics();
    EXPECT_EQ(
        s.mapped,
        sum_of_parts(s));  // "mapped = in use + in caches + free in spans + free, not given back + given back, always"
    EXPECT_LE(s.mapped, s.mapped_peak);
    std::uint64_t asked_for = 0;
    for (const auto& [p, b] : live_) asked_for += b.size;
    EXPECT_GE(s.in_use, asked_for);
    EXPECT_EQ(s.requested,
              expect_.notes_requests ? asked_for : 0);  // "what was asked for, where recipe.notes_requests says so"
    // "Calls f for each block in use, by address. Exact while no other thread is in the heap"
    const auto seen = heap_.blocks();
    ASSERT_EQ(seen.size(), live_.size());
    std::size_t n = 0;
    for (const auto& [p, b] : live_) {
      EXPECT_EQ(seen[n].first, p);
      EXPECT_GE(seen[n].second, b.size);
      ++n;
    }
  }

  any_heap& heap_;
  expectations expect_;
  std::minstd_rand random_;
  live_blocks live_;
  std::size_t size_ = 0;
  std::uintptr_t near_ = 0;
};

template <class Heap>
void behaves_as_documented(Heap& heap, const expectations& e = {}, int steps = 1500, unsigned seed = 1) {
  heap_under_test<Heap> any(heap);
  random_program(any, e, seed).run(steps);
}

/// Calls f with each block of a heap; a heap that throws its blocks away needs no list of them.
template <class Heap>
std::size_t count_blocks(Heap& heap) {
  std::size_t n = 0;
  EXPECT_TRUE(heap.for_each_block([&](const void*, std::size_t) { ++n; }));
  return n;
}

}  // namespace from_docs

#endif
