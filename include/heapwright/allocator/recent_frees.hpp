// Call stacks of the latest frees: where a block was freed first, when it is freed a second time.
//
// A table by the block's address. A newer free takes the entry of an older one with the same hash,
// so an old free may be unknown; a stack that is found is the right one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/call_stack.hpp>
#include <heapwright/core/hash.hpp>

namespace heapwright {

/// Not thread-safe. Takes 40 KiB.
class recent_frees {
 public:
  [[gnu::noinline]] void note(const void* p) noexcept { entries_[index(p)] = {p, call_stack::here()}; }

  /// Null: not known.
  [[nodiscard]] const call_stack* find(const void* p) const noexcept {
    const entry& e = entries_[index(p)];
    return e.block == p ? &e.stack : nullptr;
  }

 private:
  struct entry {
    const void* block = nullptr;
    call_stack stack;
  };

  static constexpr unsigned bits = 8;

  [[nodiscard]] static std::size_t index(const void* p) noexcept {
    return fibonacci_hash(address_of(p)) >> (64 - bits);
  }

  std::array<entry, std::size_t{1} << bits> entries_{};
};

}  // namespace heapwright
