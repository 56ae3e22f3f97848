// The sampled blocks that are live, in the segment, by address.
//
// Chains of a hash table, without locks. A record is of one chain for ever, and is free (address 0) or of one live block. Whoever adds a block claims a
// free record of the block's chain, or puts a new one before it. A block is freed once: so only one thread takes its sample out, and does so by a plain
// store, before anybody else can be given the address.
//
// In front of the table stands a filter, in memory of the process's own: how many samples there are for each of some thousand groups of addresses. Nearly
// every free ends there, with one look. Where every block is sampled it could only slow down: it is given up.
#pragma once

#include <array>

#include "../trace/sample_weight.hpp"
#include "segment_writer.hpp"

namespace heapwright::probe {

/// A sample that has been taken out, to be put back or not.
struct taken_sample {
  trace::reference at_stack = 0;  ///< 0: there is none
  trace::sampling_interval interval{1};
  std::uint64_t bytes = 0, at_ns = 0;
};

class sample_filter {
 public:
  [[nodiscard]] bool may_have(const void* p) const noexcept {
    return counts_[index(p)].load(std::memory_order_relaxed) != 0;
  }

  void add(const void* p) noexcept { change(p, 1); }
  void remove(const void* p) noexcept { change(p, -1); }
  void clear() noexcept { fill(0); }
  void give_up() noexcept {
    fill(given_up | given_up / 2);
  }  // what others are about to add or subtract changes nothing

  [[nodiscard]] bool is_given_up() const noexcept { return is_given_up(counts_[0].load(std::memory_order_relaxed)); }

 private:
  static constexpr unsigned bits = 13;
  static constexpr std::uint16_t given_up = 0x8000;

  static bool is_given_up(std::uint16_t count) noexcept { return count >= given_up; }

  static std::size_t index(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p) * 0x9E3779B97F4A7C15 >> (64 - bits);
  }

  void change(const void* p, int by) noexcept {
    std::atomic<std::uint16_t>& count = counts_[index(p)];
    if (is_given_up(count.load(std::memory_order_relaxed))) return;
    count.fetch_add(static_cast<std::uint16_t>(by), std::memory_order_relaxed);
  }

  void fill(std::uint16_t count) noexcept {
    for (auto& c : counts_) c.store(count, std::memory_order_relaxed);
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

  /// Takes over what was in the table of another segment at `until_ns`, with stacks up to `last`.
  void copy_from(trace::segment_header& other, std::uint64_t until_ns, trace::reference last) noexcept;

  [[nodiscard]] bool may_have(const void* p) const noexcept { return filter_.may_have(p); }

  /// From now on every block is sampled, or nearly.
  void expect_all() noexcept {
    if (!filter_.is_given_up()) filter_.give_up();
  }

  [[nodiscard]] process_lock& fork_lock() noexcept { return part_.fork_lock(); }

 private:
  using link = std::atomic<trace::reference>;

  /// Neighbours in memory are neighbours here, as programs work on what is near; 16 MiB further on it begins somewhere else.
  [[nodiscard]] link& bucket_of(std::uintptr_t address) const noexcept {
    return buckets_[((address >> 4) + (address >> 24) * 0x9E3779B97F4A7C15) & mask_];
  }
  [[nodiscard]] trace::sample& at(trace::reference r) const noexcept { return *part_.find<trace::sample>(r); }
  [[nodiscard]] trace::sample* claim(link& bucket, std::uint64_t address_and_interval) noexcept;

  growing_part part_;
  link* buckets_ = nullptr;
  std::uint64_t mask_ = 0;
  sample_filter filter_;
};

}  // namespace heapwright::probe
