// Free runs of pages by length: find a run of at least n pages, close to n, in constant time
// (Masmano et al., "TLSF", with exact bins for short runs).
//
// Bin i holds runs of length i for i < 64; above, eight bins per doubling. Invariant: nonempty_ has
// exactly the bins that have runs; a run is in exactly the bin of its length.
#pragma once

#include <cstddef>

#include <heapwright/core/bin_bitmap.hpp>
#include <heapwright/heap/span.hpp>

namespace heapwright {

class run_bins {
 public:
  void insert(span* run) noexcept {
    const unsigned b = bin_of(run->pages);
    bins_[b].push_front(run);
    nonempty_.insert(b);
  }

  void remove(span* run) noexcept {
    const unsigned b = bin_of(run->pages);
    bins_[b].remove(run);
    if (bins_[b].empty()) nonempty_.erase(b);
  }

  /// A run of at least `pages` pages, null when there is none. Every run of a later bin is long
  /// enough; in the bin of `pages` itself only the first few are tried.
  [[nodiscard]] span* find(std::size_t pages) const noexcept {
    constexpr int tries = 8;
    const unsigned exact = bin_of(pages);
    span* run = bins_[exact].front();
    for (int i = 0; run != nullptr && i < tries; ++i, run = run->next) {
      if (run->pages >= pages) return run;
    }
    return exact + 1 < count ? front_of(nonempty_.first_from(exact + 1)) : nullptr;
  }

  /// A run of the longest bin, null when there are no runs.
  [[nodiscard]] span* longest() const noexcept { return front_of(nonempty_.last_before(count)); }

  /// The first result of f that is not null, for up to `tries` runs of the longest bins.
  template <class F>
  [[nodiscard]] span* find_long(unsigned tries, F f) const noexcept {
    for (std::size_t b = nonempty_.last_before(count); b != nonempty_.none; b = nonempty_.last_before(b)) {
      for (span* run = bins_[b].front(); run != nullptr; run = run->next) {
        if (span* const found = f(run)) return found;
        if (--tries == 0) return nullptr;
      }
    }
    return nullptr;
  }

 private:
  static constexpr unsigned exact_bins = 64;
  static constexpr unsigned steps_shift = 3;
  static constexpr unsigned max_exponent = 48 - heap_page_shift;
  static constexpr unsigned count = exact_bins + ((max_exponent - 6) << steps_shift);

  static constexpr unsigned bin_of(std::size_t pages) noexcept {
    if (pages < exact_bins) return static_cast<unsigned>(pages);
    const unsigned exponent = floor_log2(pages);
    const auto step = static_cast<unsigned>(pages >> (exponent - steps_shift)) & ((1U << steps_shift) - 1);
    const unsigned b = exact_bins + ((exponent - 6) << steps_shift) + step;
    return b < count ? b : count - 1;
  }

  /// Null for no bin.
  [[nodiscard]] span* front_of(std::size_t b) const noexcept {
    return b == nonempty_.none ? nullptr : bins_[b].front();
  }

  bin_bitmap<count> nonempty_;
  span_list bins_[count];
};

}  // namespace heapwright
