// A program for an allocator of equal blocks, a pool or a slab. Beside what the model knows of
// every allocator, it checks
//   - where each block lies: a range is asked for only when no block is free, so that none is lost
//     and every range serves as many
//   - which ranges have no live block: as many stay as the allocator is to keep, and none
//     of them after a trim
//   - stats: blocks and ranges, to the byte
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "support.hpp"

namespace heapwright::fuzzing {

/// Empty too; over-aligned now and then.
[[nodiscard]] inline layout any_layout(const operation& o) {
  return {o.size(13) - (o.a >= 128 ? 1 : 0), std::size_t{1} << (o.code % (o.code < 64 ? 13 : 5))};
}

template <class Allocator, class Source>
class equal_blocks {
 public:
  /// For blocks of layout `of` in ranges aligned to their size. A pool keeps every empty range
  /// before a trim.
  equal_blocks(Allocator& tested, Source& source, layout of, std::size_t keep_empty = SIZE_MAX)
      : tested_(tested), source_(source), of_(of), keep_empty_(keep_empty) {}

  void step(const operation& o) {
    std::size_t n = 1 + o.a * o.a / 256;
    switch (o.code % 8) {
      case 0:
      case 1:
      case 2:
        while (n > 0 && allocate(o.pattern)) --n;
        break;
      case 3:
        for (; n > 0 && !known_.empty(); --n) release(known_.latest());
        break;
      case 4:
        for (; n > 0 && !known_.empty(); --n) release(known_[0]);
        break;
      case 5:
        for (; n > 0 && !known_.empty(); --n) release(known_[n * o.b % known_.size()]);
        break;
      case 6: source_.allow(o.a < 128 ? o.a % 4 : SIZE_MAX); break;
      default:
        if (o.a % 4 == 0) {
          reset();
        } else {
          trim();
        }
    }
  }

  void audit() const {
    // By position: pools count chunks, slabs slabs.
    const auto [in_use, held, ranges] = tested_.stats();
    require(in_use == known_.size() * block_bytes());
    require(held == source_.held() && ranges == source_.ranges());
    require(empty() <= keep_empty_);
  }

  void finish() {
    while (!known_.empty()) release(known_.latest());
    trim();
    require(source_.held() == 0);
  }

 private:
  [[nodiscard]] std::size_t block_bytes() const { return tested_.usable_size(nullptr); }
  [[nodiscard]] std::size_t empty() const { return source_.ranges() - live_in_.size(); }

  [[nodiscard]] std::uintptr_t range_of(const void* p) const {
    return align_down(address_of(p), source_.held() / source_.ranges());
  }

  bool allocate(unsigned char pattern) {
    const std::size_t ranges = source_.ranges(), requests = source_.requests(), refusals = source_.refusals();
    void* const p = tested_.allocate(of_);
    if (source_.requests() != requests) expect_full(ranges);
    if (p == nullptr) {
      require(source_.refusals() != refusals);
      return false;
    }
    require(tested_.owns(p) && source_.contains(p, block_bytes()));
    known_.add(p, {block_bytes(), of_.alignment}, pattern);
    ++live_in_[range_of(p)];
    return true;
  }

  void expect_full(std::size_t ranges) {
    if (ranges == 0) return require(known_.empty());
    if (capacity_ == 0) capacity_ = known_.size() / ranges;
    require(capacity_ >= 8 && known_.size() == ranges * capacity_);
  }

  void release(const model::block& chosen) {
    const model::block known = known_.remove(chosen);
    const std::size_t empty_before = empty();
    const auto range = live_in_.find(range_of(known.at));
    const bool last = --range->second == 0;
    if (last) live_in_.erase(range);
    if (known.number % 2 == 0) {
      tested_.deallocate(known.at, of_);
    } else {
      tested_.deallocate(known.at);
    }
    require(empty() == std::min(empty_before + (last ? 1 : 0), keep_empty_));
  }

  void reset() {
    const std::size_t ranges = source_.ranges();
    known_.remove_since(0);
    live_in_.clear();
    tested_.reset();
    require(source_.ranges() == std::min(ranges, keep_empty_));
    audit();
  }

  void trim() {
    const std::size_t held = source_.held();
    require(tested_.trim() == held - source_.held());
    require(empty() == 0);
    audit();
  }

  Allocator& tested_;
  Source& source_;
  layout of_;
  std::size_t keep_empty_;
  model known_;
  std::map<std::uintptr_t, std::size_t> live_in_;  ///< blocks, by the range they lie in
  std::size_t capacity_ = 0;                       ///< blocks of a range, once one was full
};

}  // namespace heapwright::fuzzing
