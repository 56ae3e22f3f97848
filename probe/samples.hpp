// The sampled blocks that are live, in the segment, by address.
//
// Chains of a hash table under a few dozen locks. In front of it stands a filter, in memory of the process's own: how many samples there are for each of some
// thousand groups of addresses. Nearly every free ends there, with one look.
#pragma once

#include <array>

#include "poisson.hpp"
#include "segment_writer.hpp"
#include "stacks.hpp"

namespace heapwright::probe {

/// A sample that has been taken out, to be put back or not.
struct taken_sample {
  bool is_there = false;
  trace::reference at_stack = 0;
  std::uint32_t thread_id = 0;
  std::uint64_t bytes = 0, at_ns = 0;
  weight stands_for{};
};

class sample_filter {
 public:
  [[nodiscard]] bool may_have(const void* p) const noexcept {
    return counts_[index(p)].load(std::memory_order_relaxed) != 0;
  }

  void add(const void* p) noexcept { change(p, 1); }
  void remove(const void* p) noexcept { change(p, -1); }
  void clear() noexcept {
    for (auto& c : counts_) c.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned bits = 13;

  static std::size_t index(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p) * 0x9E3779B97F4A7C15 >> (64 - bits);
  }

  void change(const void* p, int by) noexcept {
    counts_[index(p)].fetch_add(static_cast<std::uint16_t>(by), std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint16_t>, std::size_t{1} << bits> counts_{};
};

class sample_table {
 public:
  void reset(trace::segment_header& h) noexcept;

  /// False: there is no room.
  [[nodiscard]] bool add(const void* p, const taken_sample& s) noexcept;

  /// The sample of this block, taken out, if it is one.
  [[nodiscard]] taken_sample take(const void* p) noexcept;

  /// Takes over what was in the table of another segment at `until_ns`. The stacks must have been taken over before.
  void copy_from(trace::segment_header& other, std::uint64_t until_ns) noexcept;

  [[nodiscard]] bool may_have(const void* p) const noexcept { return filter_.may_have(p); }

  // A fork takes all locks, so that the child finds no chain half changed; the forking thread itself passes through them meanwhile.
  void lock_all() noexcept;
  void unlock_all() noexcept;
  void reset_locks_in_child() noexcept;

 private:
  using link = std::atomic<trace::reference>;
  static constexpr std::size_t lock_count = 64;

  struct shard {
    process_lock guard;
    trace::reference unused = 0;  ///< records to be used again
  };

  class holding_shard;

  /// Neighbours in memory are neighbours here, as programs work on what is near; 16 MiB further on it begins somewhere else.
  [[nodiscard]] std::uint64_t bucket(std::uintptr_t address) const noexcept {
    return ((address >> 4) + (address >> 24) * 0x9E3779B97F4A7C15) & mask_;
  }
  [[nodiscard]] link& bucket_of(std::uintptr_t address) const noexcept { return buckets_[bucket(address)]; }
  [[nodiscard]] shard& shard_of(std::uintptr_t address) noexcept { return shards_[bucket(address) / 16 % lock_count]; }
  [[nodiscard]] trace::sample& at(trace::reference r) const noexcept { return *part_.find<trace::sample>(r); }
  void link_in(trace::sample& s, std::uintptr_t address) noexcept;

  growing_part part_;
  link* buckets_ = nullptr;
  std::uint64_t mask_ = 0;
  std::array<shard, lock_count> shards_;
  sample_filter filter_;
};

}  // namespace heapwright::probe
