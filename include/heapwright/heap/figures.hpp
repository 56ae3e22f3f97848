// The figures a heap keeps about itself: where each byte it took from the system is now.
//
//   mapped = spans + large + free_resident + free_returned        (metadata is mapped apart and counted apart)
//
// Written under the page heap's lock, read by anyone at any time, also from another process: each figure is a relaxed
// atomic, so a reader may see one change before another; the equation holds whenever no change is under way.
#pragma once

#include <atomic>
#include <cstdint>

namespace heapwright {

struct heap_figures {
  using figure = std::atomic<std::uint64_t>;

  figure mapped;          ///< bytes of address space held for blocks
  figure mapped_peak;     ///< the largest value `mapped` has had
  figure spans;           ///< bytes in spans cut into blocks of one size class
  figure large;           ///< bytes in blocks that are a run of pages of their own
  figure free_resident;   ///< bytes free in runs, contents still in memory
  figure free_returned;   ///< bytes free in runs, contents given back to the system or never touched
  figure metadata;        ///< bytes mapped for the heap's own records
  figure returned_total;  ///< bytes given back to the system since the start
  figure mappings;        ///< times memory was mapped since the start
  figure threads;         ///< threads that have a cache now
  figure threads_total;   ///< threads that have ever had one
};

}  // namespace heapwright
