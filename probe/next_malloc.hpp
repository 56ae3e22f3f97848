// The malloc below the probe, whoever's it is: the next in the order in which symbols are searched.
//
// States: unknown, then known for ever. While it is unknown each entry points to a function that finds all of them first. What dlsym itself asks for
// meanwhile comes from a small room of its own, which is never given back.
#pragma once

#include <cstddef>

namespace heapwright::probe {

struct next_malloc {
  void* (*allocate)(std::size_t size) noexcept;
  void (*deallocate)(void* p) noexcept;
  void* (*allocate_zeroed)(std::size_t count, std::size_t size) noexcept;
  void* (*reallocate)(void* p, std::size_t size) noexcept;
  void* (*allocate_aligned)(std::size_t alignment,
                            std::size_t size) noexcept;  ///< memalign, which takes any power of two
  std::size_t (*usable_size)(void* p) noexcept;
};

extern constinit next_malloc next;

/// Finds the malloc below, if it has not been found yet.
void find_next_malloc() noexcept;

}  // namespace heapwright::probe
