// What every allocator owes its user, checked against a model of the blocks that are alive:
// aligned, nowhere overlapping, contents kept. One model per allocator; all of the allocator's use
// goes through it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>

namespace heapwright::testing {

template <allocator A>
class model {
 public:
  explicit model(A& under_test, unsigned seed = 1) : a_(under_test), random_(seed) {}

  /// Null if the allocator has none.
  std::byte* allocate(layout l) {
    auto* const p = static_cast<std::byte*>(a_.allocate(l));
    if (p == nullptr) return nullptr;
    EXPECT_TRUE(is_aligned(p, l.alignment)) << static_cast<void*>(p) << " for alignment " << l.alignment;
    const auto after = live_.lower_bound(p);
    if (after != live_.end()) {
      EXPECT_LE(p + l.size, after->first) << "overlaps the next block";
    }
    if (after != live_.begin()) {
      const auto before = std::prev(after);
      EXPECT_LE(before->first + before->second.of.size, p) << "overlaps the block before";
    }
    if (l.size == 0) {
      empty_.push_back({p, l});
      return p;
    }
    block& b = live_[p] = {l, static_cast<unsigned char>(random_())};
    fill(p, b);
    bytes_ += l.size;
    return p;
  }

  void deallocate(std::byte* p, layout l) {
    forget(p, l);
    a_.deallocate(p, l);
  }

  /// Frees a live block, chosen at random. False: there is none.
  bool deallocate_any() {
    if (!empty_.empty()) {
      deallocate_empty();
      return true;
    }
    if (live_.empty()) return false;
    const auto chosen = any();
    deallocate(chosen->first, chosen->second.of);
    return true;
  }

  /// Resizes a live block in place if the allocator can. False: it could not, or there is none.
  bool resize_any(std::size_t to)
    requires can_resize<A>
  {
    if (live_.empty()) return false;
    const auto chosen = any();
    auto& [p, b] = *chosen;
    check(p, b);
    const layout wanted{to, b.of.alignment};
    if (!a_.try_resize(p, b.of, wanted)) {
      check(p, b);
      return false;
    }
    if (const auto next = std::next(chosen); next != live_.end()) {
      EXPECT_LE(p + to, next->first) << "grown into the next block";
    }
    bytes_ += to - b.of.size;
    const std::size_t kept = std::min(to, b.of.size);
    for (std::size_t i = 0; i < kept; ++i) EXPECT_EQ(p[i], std::byte{b.pattern}) << "lost by try_resize";
    b.of = wanted;
    if (to == 0) {
      a_.deallocate(p, wanted);
      live_.erase(chosen);
    } else {
      fill(p, b);
    }
    return true;
  }

  void deallocate_all() {
    while (!empty_.empty()) deallocate_empty();
    while (!live_.empty()) deallocate(live_.begin()->first, live_.begin()->second.of);
  }

  /// The allocator has freed all of it at once.
  void forget_all() {
    check_all();
    empty_.clear();
    live_.clear();
    bytes_ = 0;
  }

  void check_all() const {
    for (const auto& [p, b] : live_) check(p, b);
  }

  [[nodiscard]] std::size_t blocks() const { return live_.size() + empty_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }  ///< requested, of all live blocks
  [[nodiscard]] std::size_t random(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
  }

 private:
  struct block {
    layout of;
    unsigned char pattern;
  };
  using blocks_type = std::map<std::byte*, block>;

  typename blocks_type::iterator any() {
    // A random address in the range finds a random block, near enough.
    const auto low = address_of(live_.begin()->first), high = address_of(live_.rbegin()->first);
    const auto chosen = live_.lower_bound(reinterpret_cast<std::byte*>(low + random(high - low + 1)));
    return chosen == live_.end() ? live_.begin() : chosen;
  }

  static void fill(std::byte* p, const block& b) { std::memset(p, b.pattern, b.of.size); }

  static void check(const std::byte* p, const block& b) {
    for (std::size_t i = 0; i < b.of.size; ++i) {
      if (p[i] != std::byte{b.pattern}) {
        ADD_FAILURE() << "byte " << i << " of " << b.of.size << " was overwritten";
        return;
      }
    }
  }

  void deallocate_empty() {
    const auto [p, l] = empty_.back();
    empty_.pop_back();
    a_.deallocate(p, l);
  }

  void forget(std::byte* p, layout l) {
    bytes_ -= l.size;
    const auto found = live_.find(p);
    ASSERT_NE(found, live_.end());
    ASSERT_EQ(found->second.of, l);
    check(p, found->second);
    live_.erase(found);
  }

  A& a_;
  std::minstd_rand random_;
  blocks_type live_;
  std::vector<std::pair<std::byte*, layout>> empty_;  ///< blocks of no bytes may share an address
  std::size_t bytes_ = 0;
};

}  // namespace heapwright::testing
