// Free runs of pages by length: find a run of at least n pages, close to n, in constant time
// (Masmano et al., "TLSF", with exact bins for short runs).
//
// Bin i holds runs of length i for i < 64; above, eight bins per doubling. A bit tells which bins
// have runs. Invariant: bit i set <=> bin i is not empty; a run is in exactly the bin of its
// length.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <heapwright/heap/span.hpp>

namespace heapwright {

class run_bins {
 public:
  void insert(span* run) noexcept {
    const unsigned b = bin_of(run->pages);
    bins_[b].push_front(run);
    nonempty_[b / 64] |= std::uint64_t{1} << (b % 64);
  }

  void remove(span* run) noexcept {
    const unsigned b = bin_of(run->pages);
    bins_[b].remove(run);
    if (bins_[b].empty()) nonempty_[b / 64] &= ~(std::uint64_t{1} << (b % 64));
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
    return first_from(exact + 1);
  }

  /// A run of the longest bin, null when there are no runs.
  [[nodiscard]] span* longest() const noexcept {
    for (unsigned w = words; w-- > 0;) {
      if (nonempty_[w] != 0) return bins_[w * 64 + floor_log2(nonempty_[w])].front();
    }
    return nullptr;
  }

  /// The first result of f that is not null, for up to `tries` runs of the longest bins.
  template <class F>
  [[nodiscard]] span* find_long(unsigned tries, F f) const noexcept {
    for (unsigned w = words; w-- > 0;) {
      for (std::uint64_t bits = nonempty_[w]; bits != 0;) {
        const unsigned bit = floor_log2(bits);
        bits &= ~(std::uint64_t{1} << bit);
        for (span* run = bins_[w * 64 + bit].front(); run != nullptr; run = run->next) {
          if (span* const found = f(run)) return found;
          if (--tries == 0) return nullptr;
        }
      }
    }
    return nullptr;
  }

 private:
  static constexpr unsigned exact_bins = 64;
  static constexpr unsigned steps_shift = 3;
  static constexpr unsigned max_exponent = 48 - heap_page_shift;
  static constexpr unsigned count = exact_bins + ((max_exponent - 6) << steps_shift);
  static constexpr unsigned words = (count + 63) / 64;

  static constexpr unsigned bin_of(std::size_t pages) noexcept {
    if (pages < exact_bins) return static_cast<unsigned>(pages);
    const unsigned exponent = floor_log2(pages);
    const auto step = static_cast<unsigned>(pages >> (exponent - steps_shift)) & ((1U << steps_shift) - 1);
    const unsigned b = exact_bins + ((exponent - 6) << steps_shift) + step;
    return b < count ? b : count - 1;
  }

  [[nodiscard]] span* first_from(unsigned b) const noexcept {
    if (b >= count) return nullptr;
    std::uint64_t bits = nonempty_[b / 64] & (~std::uint64_t{0} << (b % 64));
    for (unsigned w = b / 64;;) {
      if (bits != 0) return bins_[w * 64 + static_cast<unsigned>(std::countr_zero(bits))].front();
      if (++w == words) return nullptr;
      bits = nonempty_[w];
    }
  }

  std::uint64_t nonempty_[words]{};
  span_list bins_[count];
};

}  // namespace heapwright
