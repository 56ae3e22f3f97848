// Which call paths a thread has sampled often: their next samples are mostly skipped, which makes
// room for those of rare paths.
//
// Most samples are of a few places that allocate all the time; a leak is seldom among them. A
// skipped sample costs a twentieth of one that is taken. So for the same cost the interval is some
// times finer, and a rare path is sampled as many times more often, a frequent one hardly less.
//
// A path is told by where malloc was called from and by the stack pointer then: two paths may be
// taken for one, which is less efficient but not wrong. `thinning` is an exponent: one sample in
// 2^thinning is taken, and stands for as many. What it is follows from earlier samples only, so
// estimates stay without bias.
//
// Invariant: a count is the number of the path's samples among the last ones, older ones counting
// less: all counts are halved after each 1024 samples. So only paths with a share of the thread's
// samples are thinned:
//
//   count   from 16      32      64        of at most 2048
//   share        0.8 %   1.6 %   3.1 %
//   taken        1/2     1/4     1/8
#pragma once

#include <array>
#include <cstdint>

#include <heapwright/core/hash.hpp>

namespace heapwright::probe {

/// Of one thread. All zero is ready. 1 KiB.
class sampled_paths {
 public:
  static constexpr unsigned most_thinning = 3;

  /// Counts a sample of the path; answers its thinning. O(1), and once in 1024 times O(paths).
  [[nodiscard]] unsigned count(std::uintptr_t caller, std::uintptr_t stack_pointer) noexcept {
    if (++samples_ % half_life == 0)
      for (std::uint32_t& e : entries_) e = (e & tag_mask) | (e & count_mask) / 2;
    const std::uint64_t hash = fibonacci_hash(caller ^ stack_pointer << 20);
    std::uint32_t& e = entries_[hash >> (64 - index_bits)];
    const auto tag = static_cast<std::uint32_t>(hash >> (64 - index_bits - tag_bits)) << count_bits & tag_mask;
    if ((e & tag_mask) != tag) {
      // The path that was here keeps its place while it is the more frequent one.
      e = (e & count_mask) > 1 ? e - 1 : tag | 1;
      return 0;
    }
    const std::uint32_t before = e & count_mask;
    if (before < count_mask) ++e;
    return before < 16 ? 0 : before < 32 ? 1 : before < 64 ? 2 : most_thinning;
  }

 private:
  static constexpr unsigned index_bits = 8, tag_bits = 20, count_bits = 12;
  static constexpr std::uint32_t count_mask = (1U << count_bits) - 1, tag_mask = ~count_mask;
  static constexpr std::uint32_t half_life = 1024;

  std::array<std::uint32_t, std::size_t{1} << index_bits> entries_{};
  std::uint32_t samples_ = 0;
};

}  // namespace heapwright::probe
