// The malloc below the probe, of any library: the next in the order in which symbols are searched.
//
// States: unknown, then known for ever. While it is unknown each entry points to a function that
// finds all of them first. What dlsym itself asks for meanwhile comes from a small room of its own,
// which is never given back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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

/// Finds the malloc below, if it has not been found yet.
void find_next_malloc() noexcept;

/// Whether the calling thread is about to: what is allocated meanwhile comes from the early room.
[[nodiscard]] bool is_finding_next_malloc() noexcept;

}  // namespace heapwright::probe
