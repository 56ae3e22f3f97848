// An allocator that counts what passes through it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>

namespace heapwright {

/// Bytes. `in_use` and `peak` count a block as the allocator rounds it, where that tells
/// (has_usable_size), otherwise as it was asked for: so a free without a layout counts right.
struct meter {
  std::uint64_t allocations = 0;          ///< requests that got memory
  std::uint64_t deallocations = 0;        ///< blocks that were freed
  std::uint64_t failures = 0;             ///< requests that got null
  std::uint64_t total_bytes = 0;          ///< asked for by all allocations so far
  std::size_t in_use = 0;                 ///< of live blocks
  std::size_t peak = 0;                   ///< the most that in_use ever was
  std::array<std::uint64_t, 65> sizes{};  ///< [k]: allocations of 2^(k-1) .. 2^k - 1 bytes; [0]: of none

  /// Blocks that have not been freed.
  [[nodiscard]] std::uint64_t live_blocks() const noexcept { return allocations - deallocations; }
};

/// Where a meter is told to that nobody else reads. heapwright::live::meter_report shows it in the
/// live view.
struct unreported {
  /// Does nothing.
  void update(const meter&) const noexcept {}
};

/// A with a meter, of which Report is told each time it changes. Owns A. Not thread-safe: a meter
/// for several threads is `locked<metered<A>, ...>`.
template <class A, class Report = unreported>
class metered : public forwards<metered<A, Report>, true, A> {
  using base = forwards<metered, true, A>;
  friend base;

  static_assert(
      allocator<A>,
      "metered: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  /// Arguments are those of A.
  template <class... Arguments>
    requires std::is_constructible_v<A, Arguments...>
  explicit metered(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  /// As the part does. Counts an allocation, or a failure when it is null. O(1) beyond what the
  /// part takes.
  [[nodiscard]] void* allocate(layout l) noexcept { return count_allocation(part_.allocate(l), l.size); }

  /// As above, for a part of one layout. Counts the bytes of a block.
  [[nodiscard]] void* allocate() noexcept
    requires has_one_layout<A>
  {
    void* const p = part_.allocate();
    return count_allocation(p, p == nullptr ? 0 : bytes_of(p, 0));
  }

  /// As the part does. Counts a deallocation. Null does nothing and is not counted.
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) return;
    count_free(bytes_of(p, l.size));
    part_.deallocate(p, l);
  }

  /// As above, where the part tells the size of its blocks.
  void deallocate(void* p) noexcept
    requires can_deallocate_unsized<A> && has_usable_size<A>
  {
    if (p == nullptr) return;
    count_free(part_.usable_size(p));
    part_.deallocate(p);
  }

  /// As the part does. Changes `in_use` where it succeeds; counts nothing else.
  [[nodiscard]] bool try_resize(void* p, layout from, layout to) noexcept
    requires can_resize<A>
  {
    const std::size_t before = bytes_of(p, from.size);
    if (!part_.try_resize(p, from, to)) return false;
    count_resize(before, bytes_of(p, to.size));
    return true;
  }

  /// As realloc of C. Counts as a change of size; as an allocation or a free where it is one; as a
  /// failure where it is null and p is as it was.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept
    requires can_reallocate<A> && has_usable_size<A>
  {
    if (p == nullptr) return count_allocation(part_.reallocate(p, size), size);
    const std::size_t before = part_.usable_size(p);
    if (size == 0) count_free(before);
    void* const moved = part_.reallocate(p, size);
    if (moved != nullptr) {
      count_resize(before, part_.usable_size(moved));
    } else if (size != 0) {
      count_allocation(nullptr, size);
    }
    return moved;
  }

  /// As the part does. Counts a deallocation for each live block.
  void reset() noexcept
    requires can_reset<A>
  {
    part_.reset();
    read_.deallocations = read_.allocations;
    read_.in_use = 0;
    report_.update(read_);
  }

  /// What has been counted so far. Valid as long as this object.
  [[nodiscard]] const meter& reading() const noexcept { return read_; }

  /// The part. What is allocated there directly is not counted.
  [[nodiscard]] A& part() noexcept { return part_; }

  /// What is told of each change.
  [[nodiscard]] Report& report() noexcept { return report_; }

 private:
  /// `asked` where the part does not tell.
  [[nodiscard]] std::size_t bytes_of(const void* p, std::size_t asked) const noexcept {
    if constexpr (has_usable_size<A>) return part_.usable_size(p);
    return asked;
  }

  void* count_allocation(void* p, std::size_t asked) noexcept {
    if (p == nullptr) {
      ++read_.failures;
      report_.update(read_);
      return nullptr;
    }
    ++read_.allocations;
    read_.total_bytes += asked;
    ++read_.sizes[static_cast<std::size_t>(std::bit_width(asked))];
    count_resize(0, bytes_of(p, asked));
    return p;
  }

  void count_free(std::size_t bytes) noexcept {
    ++read_.deallocations;
    count_resize(bytes, 0);
  }

  void count_resize(std::size_t before, std::size_t now) noexcept {
    read_.in_use += now - before;
    read_.peak = std::max(read_.peak, read_.in_use);
    report_.update(read_);
  }

  A part_;
  meter read_;
  [[no_unique_address]] Report report_;
};

}  // namespace heapwright
