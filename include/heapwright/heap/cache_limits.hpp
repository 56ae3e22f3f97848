// How many freed blocks a thread cache keeps of each class. A pure policy: it is told lengths and
// byte counts, and sets limits through its caller.
//
// Problem. A limit that is too low sends blocks to the central free list and back; a limit that is
// too high keeps memory from other threads. So limits start small and double while the thread keeps
// running into them. Once all limits of a kind together have grown by the thread's share, one class
// grows at the cost of others that do not use half of theirs.
//
// Short and long blocks (thread_cache_plan::first_bytes) are the two kinds. Short blocks have a
// fixed share. The share of long blocks grows with the memory in use, divided by the threads: they
// are fewer, and dear to get.
//
// Invariant: growth_[kind] is the sum over the classes of that kind of (limit - first limit) *
// block size, and is at most the share of the moment when a limit was last raised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <heapwright/heap/class_table.hpp>

namespace heapwright {

/// Of one thread. `Lists`, the caller, has: limit(c) and length(c), blocks that the class may keep
/// and does keep; and set_limit(c, blocks).
template <const recipe& R>
class cache_limits {
  using classes = class_table<R>;

 public:
  [[nodiscard]] static std::int32_t first_limit(unsigned c) noexcept { return classes::of(c).first_kept; }

  /// More blocks of class c do not wait for their owner: 16 KiB, and two.
  [[nodiscard]] static constexpr std::uint32_t most_in_inbox(unsigned c) noexcept {
    return static_cast<std::uint32_t>(16 * KiB / classes::of(c).size + 2);
  }

  /// Bytes by which the limits of one kind may grow, with so many bytes in use by so many threads.
  [[nodiscard]] static std::int64_t share(bool is_long, std::uint64_t in_use, std::uint64_t threads) noexcept {
    constexpr auto& plan = R.thread_cache;
    if (!is_long) return plan.share_bytes;
    const auto part = static_cast<std::int64_t>(in_use / plan.long_divisor / std::max<std::uint64_t>(threads, 1));
    return std::clamp<std::int64_t>(part, plan.share_bytes, plan.max_long_bytes);
  }

  /// Doubles the limit of class c, if the share allows it or other classes make room. True: it is
  /// higher now.
  template <class Lists>
  [[nodiscard]] bool raise(unsigned c, std::int64_t share, Lists& lists) noexcept {
    const auto& info = classes::of(c);
    const bool kind = classes::is_long(c);
    if (!may_raise_[kind] || lists.limit(c) >= info.max_kept) return false;
    const std::int32_t raised = std::clamp<std::int32_t>(lists.limit(c) * 2, 1, info.max_kept);
    const std::int64_t allowed = share - std::int64_t{raised - lists.limit(c)} * info.size;
    for (unsigned tried = 0; growth_[kind] > allowed && tried < victims_per_raise; ++tried) lower_next(kind, lists);
    if (growth_[kind] > allowed) {
      may_raise_[kind] = false;
      return false;
    }
    set(c, raised, lists);
    return true;
  }

  /// Sets the limit of class c.
  template <class Lists>
  void set(unsigned c, std::int32_t limit, Lists& lists) noexcept {
    growth_[classes::is_long(c)] += (limit - lists.limit(c)) * static_cast<std::int64_t>(classes::of(c).size);
    lists.set_limit(c, limit);
  }

  /// At each look at the clock between two passes: a class that found no room may try again.
  void allow_raises() noexcept { may_raise_[0] = may_raise_[1] = !is_fixed_; }

  /// Limits stay as they are from now on.
  void fix() noexcept {
    is_fixed_ = true;
    allow_raises();
  }

  /// Bytes by which all limits together have grown.
  [[nodiscard]] std::int64_t growth() const noexcept { return growth_[0] + growth_[1]; }

 private:
  static constexpr unsigned victims_per_raise = 4;

  /// Halves the limit of the next class of a kind, if it keeps no more than that.
  template <class Lists>
  void lower_next(bool is_long, Lists& lists) noexcept {
    const unsigned c = next_victim(is_long);
    const std::int32_t lowered = std::max(lists.limit(c) / 2, first_limit(c));
    if (static_cast<std::int32_t>(lists.length(c)) <= lowered) set(c, lowered, lists);
  }

  unsigned next_victim(bool is_long) noexcept {
    const unsigned first = is_long ? classes::first_long : 1;
    const unsigned end = is_long ? classes::count : classes::first_long;
    unsigned& c = victim_[is_long];
    return c = c < first || c + 1 >= end ? first : c + 1;
  }

  // By kind: short, long.
  std::int64_t growth_[2]{};
  unsigned victim_[2]{};           ///< the class whose limit was lowered last
  bool may_raise_[2]{true, true};  ///< false from when no class had room to spare until allow_raises
  bool is_fixed_ = false;
};

}  // namespace heapwright
