// The malloc below the probe, of any library: the next in the order in which symbols are searched.
//
// States: unknown, then known for ever. While it is unknown each entry points to a function that
// finds all of them first. What dlsym itself asks for meanwhile comes from a small room of its own,
// which is never given back.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/heap/block_claim.hpp>

namespace heapwright::probe {

struct next_malloc {
  void* (*allocate)(std::size_t size) noexcept;
  void (*deallocate)(void* p) noexcept;
  void* (*allocate_zeroed)(std::size_t count, std::size_t size) noexcept;
  void* (*reallocate)(void* p, std::size_t size) noexcept;
  void* (*allocate_aligned)(std::size_t alignment,
                            std::size_t size) noexcept;  ///< memalign, which takes any power of two
  std::size_t (*usable_size)(void* p) noexcept;

  // What libheapwright's own operator new and delete do: it looks at what they say of a block. Null
  // where the malloc below is another.
  void* (*allocate_as)(std::size_t size, std::size_t alignment, block_origin origin) noexcept;
  void (*deallocate_as)(void* p, block_origin origin, std::size_t size, std::size_t alignment) noexcept;
  void (*set_origin)(void* p, block_origin origin) noexcept;
};

extern constinit next_malloc next [[gnu::visibility("hidden")]];

/// Frees p, of which the caller says this: the last three are a block_claim.
inline void deallocate_next(void* p, block_origin origin, std::size_t size, std::size_t alignment) noexcept {
  if (next.deallocate_as != nullptr) return next.deallocate_as(p, origin, size, alignment);
  next.deallocate(p);
}

/// What malloc_usable_size will say of a fresh block, as far as the malloc below promises it:
/// jemalloc's nallocx does, for each size that is asked for. To ask after each malloc would take
/// longer, there, than malloc does.
class promised_sizes {
 public:
  struct promise {
    std::uint16_t bytes = 0, size_class = 0;  ///< of size_scale
  };

  /// Null: it is to be asked.
  [[nodiscard]] const promise* of(std::size_t requested) const noexcept {
    return requested < end_ ? &promises_[(requested + step - 1) / step] : nullptr;
  }

  void learn(std::size_t (*usable_size_of)(std::size_t requested, int flags)) noexcept;

 private:
  static constexpr std::size_t step = 8, longest = 1024;
  std::size_t end_ = 0;
  std::array<promise, longest / step + 1> promises_{};
};

extern constinit promised_sizes promised [[gnu::visibility("hidden")]];

/// What glibc's malloc_usable_size will say of a block, read where glibc keeps it: in the word
/// before the block. The function reads the next block's word too, which is often in no cache; and
/// a call takes longer than the rest of counting.
///
/// States: off (the malloc below is not glibc's); on trial, for the first blocks that are asked
/// about: what is read has to be what the function says; on; refused, as it was not.
class glibc_block_sizes {
 public:
  /// The malloc below is glibc's. Once, while there is one thread.
  void begin_trial() noexcept { state_.store(trial_blocks, std::memory_order_relaxed); }

  /// Of p, a live block. False: the function is to be asked.
  [[gnu::always_inline]] bool find(const void* p, std::size_t& bytes) const noexcept {
    if (state_.load(std::memory_order_relaxed) != on) return false;
    const std::size_t word = word_before(p);
    bytes = bytes_in(word);
    return (word & is_mapped) == 0;
  }

  /// Of p, the function has said this.
  void try_on(const void* p, std::size_t bytes) noexcept;

 private:
  static constexpr std::uint32_t off = ~0U, on = 0, trial_blocks = 64;
  static constexpr std::size_t flags = 7, is_mapped = 2;  // of the word; the rest are bytes, with the word's own

  static std::size_t word_before(const void* p) noexcept {
    std::size_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(p) - sizeof word, sizeof word);
    return word;
  }
  static std::size_t bytes_in(std::size_t word) noexcept { return (word & ~flags) - sizeof word; }

  std::atomic<std::uint32_t> state_{off};  ///< on, off (or refused), or the blocks that are still to be tried
};

extern constinit glibc_block_sizes glibc_blocks [[gnu::visibility("hidden")]];

/// What malloc_usable_size says of p, a live block.
[[nodiscard, gnu::always_inline]] inline std::size_t usable_size(void* p) noexcept {
  std::size_t bytes = 0;
  return glibc_blocks.find(p, bytes) ? bytes : next.usable_size(p);
}

/// Finds the malloc below, if it has not been found yet.
void find_next_malloc() noexcept;

/// Whether the calling thread is about to: what is allocated meanwhile comes from the early room.
[[nodiscard]] bool is_finding_next_malloc() noexcept;

}  // namespace heapwright::probe
