// The sampled blocks that are live, in the segment, by address.
//
// Chains of a hash table, without locks. A record is of one chain for ever; segment::sample has its
// states. A thread that adds a block claims a free record of the block's chain, or puts a new one
// before it. A block is freed once, so only one thread takes its sample out, and does so before
// anybody else can be given the address. Thinning may drop or change the sample at the same moment:
// both go by compare-and-swap of `address_and_interval`, and the thread that loses looks again.
//
// Two records are in a cache line. A thread takes new ones in such pairs and keeps the second for
// its next one: threads that sample at once would have to pass the line to and fro.
//
// In front of the table stands a filter, in memory of the process's own. Nearly every free ends
// there, with one look. Where every block is sampled it could only slow down: it is given up.
#pragma once

#include "../segment/sample_weight.hpp"
#include "address_filter.hpp"
#include "segment_writer.hpp"
#include "thinning.hpp"

namespace heapwright::probe {

/// A sample that has been taken out, to be put back or not.
struct taken_sample {
  segment::reference at_stack = 0;  ///< 0: there is none
  segment::sampling_interval interval{1};
  std::uint64_t bytes = 0, at_ns = 0;
};

class sample_table {
 public:
  /// A record that no chain has yet, for the thread that has it; 0: none.
  using spare_record = segment::reference;

  void reset(segment::segment_header& h) noexcept;

  /// False: there is no room.
  [[nodiscard]] bool add(const void* p, const taken_sample& s, spare_record& spare) noexcept;

  /// Of a thread that keeps no spare record. False: there is no room.
  [[nodiscard]] bool add(const void* p, const taken_sample& s) noexcept {
    spare_record spare = 0;
    const bool is_added = add(p, s, spare);
    give_back(spare);
    return is_added;
  }

  /// The thread that has it ends.
  void give_back(spare_record spare) noexcept;

  /// The sample of this block, taken out, if it is one.
  [[nodiscard]] taken_sample take(const void* p) noexcept;

  /// Calls `note` for each sample that is dropped or made coarser by the way: with its block, what
  /// it was, and its new interval, or null. Does nothing where at most `most` samples are live. One
  /// thread at a time. O(records).
  void thin(std::uint64_t most, std::uint64_t& random,
            void (*note)(const void* p, const taken_sample& was,
                         const segment::sampling_interval* is) noexcept) noexcept;

  /// Room taken, in records: live samples, and those that were.
  [[nodiscard]] std::uint64_t records() const noexcept { return part_.used() / sizeof(segment::sample); }

  /// Calls `visit` for each sample that was taken before `until_ns` and is live in another segment,
  /// which may change meanwhile. at_stack is a stack there. O(records).
  static void for_each_in(segment::segment_header& other, std::uint64_t until_ns,
                          void (*visit)(segment::segment_header& other, const void* p,
                                        const taken_sample& s) noexcept) noexcept;

  /// False: the block is no sample.
  [[nodiscard]] bool may_have(const void* p) const noexcept { return filter_.may_have(p); }

  /// The block will be added or taken soon: its chain is on its way to the processor meanwhile.
  void prefetch(const void* p) const noexcept {
    const segment::reference first = bucket_of(reinterpret_cast<std::uintptr_t>(p)).load(std::memory_order_relaxed);
    __builtin_prefetch(&at(first), 1);
  }

  /// From now on every block is sampled, or nearly.
  void expect_all() noexcept {
    if (!expects_all()) filter_.give_up();
  }

  [[nodiscard]] bool expects_all() const noexcept { return filter_.is_given_up(); }

  [[nodiscard]] process_lock& fork_lock() noexcept { return part_.fork_lock(); }

 private:
  using link = std::atomic<segment::reference>;

  /// Neighbours in memory are neighbours here, as programs work on what is near; 16 MiB further on
  /// it begins somewhere else.
  [[nodiscard]] link& bucket_of(std::uintptr_t address) const noexcept {
    return buckets_[((address >> 4) + fibonacci_hash(address >> 24)) & mask_];
  }
  [[nodiscard]] segment::sample& at(segment::reference r) const noexcept { return *part_.find<segment::sample>(r); }
  [[nodiscard]] segment::sample* claim(link& bucket, spare_record& spare) noexcept;
  [[nodiscard]] segment::sample* new_record(spare_record& spare) noexcept;
  template <class Visit>
  void for_each_live(Visit visit) noexcept;

  growing_part part_;
  link* buckets_ = nullptr;
  std::uint64_t mask_ = 0;
  std::atomic<spare_record> given_back_{0};  ///< the first of a list, by `next`; changed under the part's lock
  address_filter filter_;
  live_sample_counts counts_;
};

}  // namespace heapwright::probe
