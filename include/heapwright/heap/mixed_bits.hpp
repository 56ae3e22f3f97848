// The record of a mixed span (mixed_spans.hpp): where its chunks begin, and which of them are
// blocks that are outside. It lies apart from the span.
//
// A span has `grains` grains of 16 bytes, and the record two bits for each:
//   begins      a chunk begins here
//   outside     of a grain that begins a chunk: it is a block, with a thread cache or the program
// The size of a chunk is the distance to the next bit of `begins`.
//
// Written under the lock of the mixed spans. The bits of a block that is outside, and the bit
// behind it, do not change: the thread that frees it reads them without the lock.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <heapwright/heap/span.hpp>

namespace heapwright {

/// The record of a mixed span.
class mixed_bits {
 public:
  static constexpr std::size_t grain = 16;
  static constexpr std::size_t span_bytes = 64 * KiB;
  static constexpr std::size_t grains = span_bytes / grain;

  [[nodiscard]] bool begins(std::size_t g) const noexcept { return is_set(begins_, g); }
  [[nodiscard]] bool is_outside(std::size_t g) const noexcept { return is_set(outside_, g); }

  /// The next beginning behind g; `grains` behind the last chunk.
  [[nodiscard]] std::size_t end_of(std::size_t g) const noexcept {
    if (g + 1 == grains) return grains;
    std::size_t w = (g + 1) / word_bits;
    std::uint64_t bits = begins_[w].load(relaxed) & (~std::uint64_t{0} << (g + 1) % word_bits);
    if (bits == 0) {
      // Shifted twice, because a shift by 64 has no meaning.
      const std::uint64_t later = words_in_use_.load(relaxed) & (~std::uint64_t{0} << w << 1);
      if (later == 0) return grains;
      w = static_cast<std::size_t>(std::countr_zero(later));
      bits = begins_[w].load(relaxed);
    }
    return w * word_bits + static_cast<std::size_t>(std::countr_zero(bits));
  }

  /// The last beginning before g. Precondition: g > 0; a chunk begins at grain 0.
  [[nodiscard]] std::size_t before(std::size_t g) const noexcept {
    std::size_t w = (g - 1) / word_bits;
    std::uint64_t bits = begins_[w].load(relaxed) & (~std::uint64_t{0} >> (word_bits - 1 - (g - 1) % word_bits));
    if (bits == 0) {
      w = floor_log2(words_in_use_.load(relaxed) & ((std::uint64_t{1} << w) - 1));
      bits = begins_[w].load(relaxed);
    }
    return w * word_bits + floor_log2(bits);
  }

  // The lock of the mixed spans is held.

  void set_begins(std::size_t g, bool is) noexcept {
    set(begins_, g, is);
    const std::size_t w = g / word_bits;
    const std::uint64_t bit = std::uint64_t{1} << w, in_use = words_in_use_.load(relaxed);
    words_in_use_.store(begins_[w].load(relaxed) != 0 ? in_use | bit : in_use & ~bit, relaxed);
  }
  void set_outside(std::size_t g, bool is) noexcept { set(outside_, g, is); }

  mixed_bits* next_unused = nullptr;  ///< records are never freed

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr std::size_t word_bits = 64;
  static_assert(grains == word_bits * word_bits);
  using word = std::atomic<std::uint64_t>;

  static bool is_set(const word* words, std::size_t g) noexcept {
    return (words[g / word_bits].load(relaxed) >> g % word_bits & 1) != 0;
  }
  static void set(word* words, std::size_t g, bool is) noexcept {
    word& w = words[g / word_bits];
    const std::uint64_t bit = std::uint64_t{1} << g % word_bits;
    w.store(is ? w.load(relaxed) | bit : w.load(relaxed) & ~bit, relaxed);
  }

  word words_in_use_{0};  ///< of begins_, a bit for each that is not 0
  word begins_[grains / word_bits]{};
  word outside_[grains / word_bits]{};
};

/// A block of a mixed span, as its bits have it.
struct mixed_block {
  static std::size_t grain_of(const span& s, const void* p) noexcept {
    return (address_of(p) - address_of(s.start)) / mixed_bits::grain;
  }

  /// Whether p is the beginning of a block that is outside.
  static bool is_at(const span& s, const void* p) noexcept {
    const std::size_t g = grain_of(s, p);
    return is_aligned(p, mixed_bits::grain) && s.bits->begins(g) && s.bits->is_outside(g);
  }

  /// Bytes. Precondition: is_at.
  static std::size_t size(const span& s, const void* p) noexcept {
    const std::size_t g = grain_of(s, p);
    return (s.bits->end_of(g) - g) * mixed_bits::grain;
  }
};

}  // namespace heapwright
