// The record of a mixed span (mixed_spans.hpp): where its chunks begin, and which of them are blocks
// that are outside. It lies apart from the span.
//
// A span has `grains` grains of 16 bytes, and the record two bits for each:
//   begins      a chunk begins here; the bit behind the last grain is set too
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
    std::size_t w = (g + 1) / word_bits;
    std::uint64_t bits = begins_[w].load(relaxed) & (~std::uint64_t{0} << (g + 1) % word_bits);
    while (bits == 0) bits = begins_[++w].load(relaxed);
    return w * word_bits + static_cast<std::size_t>(std::countr_zero(bits));
  }

  /// The last beginning before g. Precondition: g > 0.
  [[nodiscard]] std::size_t before(std::size_t g) const noexcept {
    std::size_t w = (g - 1) / word_bits;
    std::uint64_t bits = begins_[w].load(relaxed) & (~std::uint64_t{0} >> (word_bits - 1 - (g - 1) % word_bits));
    while (bits == 0) bits = begins_[--w].load(relaxed);
    return w * word_bits + word_bits - 1 - static_cast<std::size_t>(std::countl_zero(bits));
  }

  // The lock of the mixed spans is held.

  void set_begins(std::size_t g, bool is) noexcept { set(begins_, g, is); }
  void set_outside(std::size_t g, bool is) noexcept { set(outside_, g, is); }

  mixed_bits* next_unused = nullptr;  ///< records are never freed

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr std::size_t word_bits = 64;
  using word = std::atomic<std::uint64_t>;

  static bool is_set(const word* words, std::size_t g) noexcept {
    return (words[g / word_bits].load(relaxed) >> g % word_bits & 1) != 0;
  }
  static void set(word* words, std::size_t g, bool is) noexcept {
    word& w = words[g / word_bits];
    const std::uint64_t bit = std::uint64_t{1} << g % word_bits;
    w.store(is ? w.load(relaxed) | bit : w.load(relaxed) & ~bit, relaxed);
  }

  word begins_[grains / word_bits + 1]{};
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
