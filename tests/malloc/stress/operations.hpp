// One thread's random operations: a table of blocks that it owns, and an exchange through which
// threads take each other's. Invariant: a block in the table or the exchange holds the pattern of
// its seed over all of its size.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "../support/random.hpp"

namespace test {

struct owned_block {
  void* address = nullptr;
  std::size_t size = 0;
  std::uint64_t seed = 0;
  std::size_t alignment = 1;
  unsigned entry = 0;  ///< that has allocated it; see operations.cpp
};

/// Blocks on their way from one thread to another. A cell is taken and filled by swapping one
/// pointer.
class exchange {
 public:
  /// Leaves `given` (or null) in a cell and returns what was there (or null).
  owned_block* swap(std::size_t cell, owned_block* given) noexcept {
    return cells_[cell % cell_count].exchange(given, std::memory_order_acq_rel);
  }

  /// Frees what is left. False: a block had lost its contents.
  bool drain() noexcept;

 private:
  static constexpr std::size_t cell_count = 64;
  std::atomic<owned_block*> cells_[cell_count]{};
};

class operations {
 public:
  operations(std::uint64_t seed, exchange& shared, bool may_fail) noexcept
      : random_(seed), shared_(shared), may_fail_(may_fail) {}

  /// False: a block was wrong; stderr says which and how.
  bool run(std::size_t count) noexcept;

 private:
  static constexpr std::size_t slot_count = 600;

  bool step() noexcept;
  bool allocate(owned_block& b) noexcept;
  bool resize(owned_block& b) noexcept;
  bool hand_over(owned_block& b) noexcept;
  bool release(owned_block& b) noexcept;
  std::size_t next_size() noexcept;

  random random_;
  exchange& shared_;
  bool may_fail_;
  owned_block slots_[slot_count]{};
};

}  // namespace test
