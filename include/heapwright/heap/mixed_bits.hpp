// Where the chunks of a mixed span (mixed_spans.hpp) begin, and which of them are blocks that are
// outside. The bits lie in the page map, so that an address leads to them in two loads, and an
// overflow of a block does not reach them.
//
// A span has `grains` grains of 16 bytes, and two bits for each:
//   begins      a chunk begins here
//   outside     of a grain that begins a chunk: it is a block, with a thread cache or the program
// The size of a chunk is the distance to the next bit of `begins`, or to the end of the span.
//
// Written under the lock of the mixed spans; but for the words that are a thread's own, as they
// belong to its strip (mixed_strip.hpp): that thread alone writes them. The bits of a block that is
// outside, and the bit behind it, do not change: the thread that frees it reads them without the
// lock.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/layout.hpp>

namespace heapwright {

/// The bits of a mixed span, which begins at a multiple of span_bytes. All zero is no span.
class alignas(2 * sizeof(std::uint64_t)) mixed_bits {
  friend struct heap_describer;

 public:
  static constexpr std::size_t grain = 16;
  static constexpr std::size_t span_bytes = 64 * KiB;
  static constexpr std::size_t grains = span_bytes / grain;

  [[nodiscard]] static std::size_t grain_of(const void* p) noexcept { return address_of(p) % span_bytes / grain; }

  /// Bytes of the block that begins at p and is outside; 0: there is none.
  [[nodiscard]] std::size_t block_at(const void* p) const noexcept {
    const std::size_t g = grain_of(p);
    const words& w = words_of(g);
    const std::uint64_t begins = w.begins.load(relaxed) >> g % word_bits;
    if ((begins & w.outside.load(relaxed) >> g % word_bits & 1) == 0 || !is_aligned(p, grain)) [[unlikely]]
      return 0;
    return (begins >> 1 != 0 ? static_cast<std::size_t>(std::countr_zero(begins >> 1)) + 1 : end_of(g) - g) * grain;
  }

  /// Bytes of the chunk that begins at p.
  [[nodiscard]] std::size_t size_at(const void* p) const noexcept {
    const std::size_t g = grain_of(p);
    return (end_of(g) - g) * grain;
  }

  [[nodiscard]] bool is_outside(std::size_t g) const noexcept { return is_set(words_of(g).outside, g); }

  /// The next beginning behind g; `grains` behind the last chunk. Complexity: a word for each KiB.
  [[nodiscard]] std::size_t end_of(std::size_t g) const noexcept {
    if (++g == grains) return grains;
    const std::uint64_t bits = words_of(g).begins.load(acquire) >> g % word_bits;
    if (bits != 0) [[likely]]
      return g + static_cast<std::size_t>(std::countr_zero(bits));
    for (std::size_t w = g / word_bits + 1; w < word_count; ++w) {
      const std::uint64_t later = words_[w].begins.load(acquire);
      if (later != 0) return w * word_bits + static_cast<std::size_t>(std::countr_zero(later));
    }
    return grains;
  }

  /// The last beginning before g. Precondition: g > 0; a chunk begins at grain 0. Complexity as
  /// above.
  [[nodiscard]] std::size_t before(std::size_t g) const noexcept {
    --g;
    std::size_t w = g / word_bits;
    std::uint64_t bits = words_[w].begins.load(acquire) & (~std::uint64_t{0} >> (word_bits - 1 - g % word_bits));
    while (bits == 0) bits = words_[--w].begins.load(acquire);
    return w * word_bits + floor_log2(bits);
  }

  // By the thread that the word belongs to, or under the lock.

  /// Who sees that a chunk begins here sees that it is outside.
  void begin_outside(std::size_t g) noexcept {
    set_outside(g);
    set_begins(g);
  }
  void set_begins(std::size_t g) noexcept {
    word& w = words_of(g).begins;
    w.store(w.load(relaxed) | bit(g), std::memory_order_release);
  }
  void clear_begins(std::size_t g) noexcept { clear(words_of(g).begins, g); }
  void set_outside(std::size_t g) noexcept {
    word& w = words_of(g).outside;
    w.store(w.load(relaxed) | bit(g), relaxed);
  }
  void clear_outside(std::size_t g) noexcept { clear(words_of(g).outside, g); }

  // Under the lock: which words belong to a thread.

  [[nodiscard]] bool is_owned(std::size_t g) const noexcept { return (owned_words_ >> g / word_bits & 1) != 0; }

  /// Those of [begin, end), which begin and end with a word.
  void set_owned(const std::byte* begin, const std::byte* end, bool is) noexcept {
    for (; begin != end; begin += bytes_of_word) {
      const std::uint64_t its_bit = bit(grain_of(begin) / word_bits);
      owned_words_ = is ? owned_words_ | its_bit : owned_words_ & ~its_bit;
    }
  }

  [[nodiscard]] static std::byte* word_begin(std::byte* p) noexcept { return p - address_of(p) % bytes_of_word; }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr auto acquire = std::memory_order_acquire;
  static constexpr std::size_t word_bits = 64;  ///< grains
  static constexpr std::size_t bytes_of_word = word_bits * grain;
  static constexpr std::size_t word_count = grains / word_bits;
  using word = std::atomic<std::uint64_t>;

  struct words {
    word begins, outside;  // side by side, as they are asked together
  };

  [[nodiscard]] static std::uint64_t bit(std::size_t g) noexcept { return std::uint64_t{1} << g % word_bits; }
  [[nodiscard]] static bool is_set(const word& w, std::size_t g) noexcept { return (w.load(relaxed) & bit(g)) != 0; }
  static void clear(word& w, std::size_t g) noexcept { w.store(w.load(relaxed) & ~bit(g), relaxed); }

  [[nodiscard]] words& words_of(std::size_t g) noexcept { return words_[g / word_bits]; }
  [[nodiscard]] const words& words_of(std::size_t g) const noexcept { return words_[g / word_bits]; }

  words words_[word_count]{};
  std::uint64_t owned_words_ = 0;
};

}  // namespace heapwright
