// An allocator that counts what passes through it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <heapwright/core/concepts.hpp>

namespace heapwright {

/// Sizes are those asked for, in bytes.
struct meter {
  std::uint64_t allocations = 0;
  std::uint64_t deallocations = 0;
  std::uint64_t failures = 0;             ///< requests that got null
  std::uint64_t total_bytes = 0;          ///< of all allocations so far
  std::size_t in_use = 0;                 ///< bytes alive now
  std::size_t peak = 0;                   ///< most bytes that were ever alive at one moment
  std::array<std::uint64_t, 65> sizes{};  ///< [k]: allocations of 2^(k-1) .. 2^k - 1 bytes; [0]: of none

  [[nodiscard]] std::uint64_t live_blocks() const noexcept { return allocations - deallocations; }
};

/// Where a meter is told to that nobody else reads. heapwright::live::meter_report shows it in the live view.
struct unreported {
  void update(const meter&) const noexcept {}
};

/// A with a meter, of which Report is told each time it changes. Owns A. Not thread-safe: a meter for several threads is locked<metered<A>, ...>.
template <class A, class Report = unreported>
class metered {
  static_assert(
      allocator<A>,
      "metered: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  template <class... Arguments>
  explicit metered(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  [[nodiscard]] void* allocate(layout l) noexcept {
    void* const p = part_.allocate(l);
    if (p == nullptr) {
      ++read_.failures;
      report_.update(read_);
      return nullptr;
    }
    ++read_.allocations;
    read_.total_bytes += l.size;
    ++read_.sizes[static_cast<std::size_t>(std::bit_width(l.size))];
    grow(l.size);
    report_.update(read_);
    return p;
  }

  void deallocate(void* p, layout l) noexcept {
    ++read_.deallocations;
    read_.in_use -= l.size;
    report_.update(read_);
    part_.deallocate(p, l);
  }

  [[nodiscard]] bool owns(const void* p) const noexcept
    requires can_own<A>
  {
    return part_.owns(p);
  }

  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept
    requires has_usable_size<A>
  {
    return part_.usable_size(p);
  }

  [[nodiscard]] bool try_resize(void* p, layout old, layout wanted) noexcept
    requires can_resize<A>
  {
    if (!part_.try_resize(p, old, wanted)) return false;
    read_.in_use -= old.size;
    grow(wanted.size);
    report_.update(read_);
    return true;
  }

  void reset() noexcept
    requires can_reset<A>
  {
    part_.reset();
    read_.deallocations = read_.allocations;
    read_.in_use = 0;
    report_.update(read_);
  }

  std::size_t trim() noexcept
    requires can_trim<A>
  {
    return part_.trim();
  }

  [[nodiscard]] const meter& reading() const noexcept { return read_; }
  [[nodiscard]] A& part() noexcept { return part_; }
  [[nodiscard]] Report& report() noexcept { return report_; }

 private:
  void grow(std::size_t bytes) noexcept {
    read_.in_use += bytes;
    read_.peak = std::max(read_.peak, read_.in_use);
  }

  A part_;
  meter read_;
  [[no_unique_address]] Report report_;
};

}  // namespace heapwright
