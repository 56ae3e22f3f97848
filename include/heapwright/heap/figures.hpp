// The figures a heap keeps about itself: where each byte it took from the system is now.
//
//   mapped = spans + large + free_resident + free_decommitted   (metadata is apart)
//
// Written under the page heap's lock (those of threads under that of the caches), so an addition is
// no read-modify-write of the processor's. Read by anyone at any time, also from another process: a
// reader may see one change before another; the equation holds whenever no change is under way.
#pragma once

#include <atomic>
#include <cstdint>

#include <heapwright/core/language.hpp>

namespace heapwright {

class figure {
 public:
  /// Both return the new value. The caller holds the lock that guards the figure.
  std::uint64_t add(std::uint64_t n) noexcept { return set(get() + n); }
  std::uint64_t subtract(std::uint64_t n) noexcept { return set(get() - n); }

  std::uint64_t set(std::uint64_t value) noexcept {
    value_.store(value, std::memory_order_relaxed);
    return value;
  }

  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }
  operator std::uint64_t() const noexcept { return get(); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Figures of one heap. Readers need no lock.
struct heap_figures {
  figure mapped;                  ///< bytes of address space held for blocks
  figure mapped_peak;             ///< the largest value `mapped` has had
  figure spans;                   ///< bytes in spans cut into blocks of one size class
  figure large;                   ///< bytes in blocks that are a run of pages of their own
  figure free_resident;           ///< bytes free in runs, contents still in memory
  figure free_decommitted;        ///< bytes free in runs, contents given back to the system or never touched
  figure metadata;                ///< address space reserved for the heap's own records, bytes
  figure page_map;                ///< of these, the page map's: in memory where there are spans, see resident_metadata
  figure decommitted_total;       ///< bytes given back to the system since the start
  figure mappings;                ///< times memory was mapped since the start
  figure huge_reserved_total;     ///< bytes had from the system so far in huge pages that were set aside ...
  figure huge_transparent_total;  ///< ... in memory that it has promised to back by huge pages where it can ...
  figure locked_total;            ///< ... locked in memory ...
  figure bound_total;             ///< ... and bound to a NUMA node
  figure threads;                 ///< threads that have a cache now
  figure threads_total;           ///< threads that have ever had one
};

/// About how many bytes of the heap's own records are in memory: all but the parts of the page map
/// that no span has.
[[nodiscard]] constexpr std::uint64_t resident_metadata(std::uint64_t metadata, std::uint64_t page_map,
                                                        std::uint64_t page_map_of_spans) noexcept {
  const std::uint64_t others = metadata > page_map ? metadata - page_map : 0;
  return others + (page_map_of_spans < page_map ? page_map_of_spans : page_map);
}

/// Of one size class cut from spans. Plain, as its lock guards it. A reader in another process sees
/// no word half written.
struct class_figures {
  std::uint64_t outside = 0;     ///< blocks with the program or in a thread cache
  std::uint64_t span_bytes = 0;  ///< in spans of the class
};

}  // namespace heapwright
