// The large blocks that live, so that it can be told how much of them was touched.
//
// Problem. What a program touches of a block is known to the kernel alone, as long as the block
// lives; and a free does not say how large the block is. To ask the kernel takes a microsecond,
// which a program that frees a buffer as soon as it has used it would feel. So a block of some
// pages is asked for only if it has lived for a while: of those that have not, few live at once.
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
#include "clocks.hpp"

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
      e.since_ns.store(coarse_ns(), relaxed);
      return filter_.add(p);
    }
  }

  /// The look of every free.
  [[nodiscard]] bool may_have(const void* p) const noexcept { return filter_.may_have(p); }

  /// Its bytes, if it is to be asked how much of them was touched; otherwise 0.
  [[nodiscard]] std::uint64_t take(const void* p) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    for (std::size_t i = 0; i < reach; ++i) {
      entry& e = entry_at(address, i);
      if (e.address.load(relaxed) != address) continue;
      const std::uint64_t bytes = e.bytes.load(relaxed);
      const bool has_lived_for_a_while = e.since_ns.load(relaxed) != coarse_ns();
      filter_.remove(p);
      e.address.store(0, relaxed);
      return bytes >= always_asked || has_lived_for_a_while ? bytes : 0;
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
  static constexpr std::uint64_t always_asked = 64 * KiB;

  struct entry {
    std::atomic<std::uintptr_t> address;
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint64_t> since_ns;
  };

  /// Goes on every few milliseconds, and takes a few nanoseconds to read.
  [[nodiscard]] static std::uint64_t coarse_ns() noexcept { return nanoseconds(CLOCK_MONOTONIC_COARSE); }

  [[nodiscard]] entry& entry_at(std::uintptr_t address, std::size_t i) noexcept {
    return entries_[((fibonacci_hash(address) >> 40) + i) % count];
  }

  std::array<entry, count> entries_{};
  address_filter filter_;
};

/// Of these bytes, those that lie in resident pages. The last page is most often resident for the
/// block behind this one: what this block has of it counts only if the page before it is resident
/// too. Takes some nanoseconds for each page.
[[nodiscard]] inline std::uint64_t resident_bytes(std::uintptr_t address, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t page = 4096, pages_at_once = 2048;
  const std::uintptr_t end = address + bytes;
  std::uint64_t resident = 0;
  bool is_before_resident = true;
  for (std::uintptr_t at = align_down(address, page); at < end;) {
    const std::uint64_t pages = std::min((align_up(end, page) - at) / page, pages_at_once);
    unsigned char states[pages_at_once];
    if (::mincore(reinterpret_cast<void*>(at), pages * page, states) != 0) return bytes;
    for (std::uint64_t i = 0; i < pages; ++i, at += page) {
      const bool is_resident = (states[i] & 1) != 0, ends_behind = at + page > end;
      if (is_resident && (is_before_resident || !ends_behind))
        resident += std::min(at + page, end) - std::max(at, address);
      is_before_resident = is_resident;
    }
  }
  return resident;
}

}  // namespace heapwright::probe
