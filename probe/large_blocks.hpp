// The large blocks that live, so that it can be told how much of them was touched.
//
// Problem. What a program touches of a block is known to the kernel alone, as long as the block
// lives; and a free does not say how large the block is.
//
// A table by address, without locks: a thread claims an empty entry with its address, and the
// thread that frees the block empties it. Where all entries within reach are taken the block is
// not noted, and how much of it was touched is not known.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/hash.hpp>

#include "address_filter.hpp"

namespace heapwright::probe {

class large_blocks {
 public:
  void add(const void* p, std::uint64_t bytes) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    for (std::size_t i = 0; i < reach; ++i) {
      entry& e = entry_at(address, i);
      std::uintptr_t none = 0;
      if (e.address.load(relaxed) != 0 || !e.address.compare_exchange_strong(none, address, relaxed)) continue;
      e.bytes.store(bytes, relaxed);
      return filter_.add(p);
    }
  }

  /// The look of every free.
  [[nodiscard]] bool may_have(const void* p) const noexcept { return filter_.may_have(p); }

  /// Its bytes; 0: it is none.
  [[nodiscard]] std::uint64_t take(const void* p) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    for (std::size_t i = 0; i < reach; ++i) {
      entry& e = entry_at(address, i);
      if (e.address.load(relaxed) != address) continue;
      const std::uint64_t bytes = e.bytes.load(relaxed);
      filter_.remove(p);
      e.address.store(0, relaxed);
      return bytes;
    }
    return 0;
  }

  /// Calls visit(address, bytes). Others may come and go meanwhile.
  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (const entry& e : entries_) {
      if (const std::uintptr_t address = e.address.load(relaxed); address != 0) visit(address, e.bytes.load(relaxed));
    }
  }

  void clear() noexcept {
    for (entry& e : entries_) e.address.store(0, relaxed);
    filter_.clear();
  }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr std::size_t count = 4096, reach = 64;

  struct entry {
    std::atomic<std::uintptr_t> address;
    std::atomic<std::uint64_t> bytes;
  };

  [[nodiscard]] entry& entry_at(std::uintptr_t address, std::size_t i) noexcept {
    return entries_[((fibonacci_hash(address) >> 40) + i) % count];
  }

  std::array<entry, count> entries_{};
  address_filter filter_;
};

/// Of the pages of these bytes, those that are resident; no more than `bytes`. Takes some
/// nanoseconds for each page.
[[nodiscard]] inline std::uint64_t resident_bytes(std::uintptr_t address, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t page = 4096, pages_at_once = 2048;
  std::uintptr_t at = align_down(address, page);
  const std::uintptr_t end = align_up(address + bytes, page);
  std::uint64_t resident = 0;
  while (at < end) {
    const std::uint64_t pages = std::min((end - at) / page, pages_at_once);
    unsigned char states[pages_at_once];
    if (::mincore(reinterpret_cast<void*>(at), pages * page, states) != 0) return bytes;
    for (std::uint64_t i = 0; i < pages; ++i) resident += states[i] & 1;
    at += pages * page;
  }
  return std::min(resident * page, bytes);
}

}  // namespace heapwright::probe
