// Where the bytes of a heap of libheapwright are at one moment, copied from the process.
//
// Problem     the figures of a heap lie in a process that goes on. Views need all of them together,
//             and after the process has ended.
// Invariant   a reading is a value: it does not change with the process. The process writes its
//             figures one after the other, so their sums may be off by what has changed meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <heapwright/malloc/process_record.hpp>

namespace heapwright::tool {

/// A size class that is cut from spans, at one moment.
struct class_reading {
  std::uint32_t block_bytes = 0;
  std::uint64_t outside = 0;  ///< blocks with the program or in the cache of a thread
  std::uint64_t span_bytes = 0;
};

/// Bytes.
struct heap_reading {
  std::uint64_t mapped = 0, spans = 0, large = 0, free_resident = 0, free_decommitted = 0, metadata = 0, page_map = 0,
                page_map_of_spans = 0, decommitted_total = 0;
  std::uint64_t huge_asked = 0;  ///< of the system so far, in huge pages
  std::uint64_t threads = 0;     ///< that have a cache; a count
  std::vector<class_reading> classes;
  std::optional<recipe_values> recipe{};  ///< nothing in a saved run

  /// With the program or in the thread caches.
  [[nodiscard]] std::uint64_t outside() const noexcept;

  /// Within spans, neither with the program nor in a thread cache.
  [[nodiscard]] std::uint64_t free_in_spans() const noexcept;

  /// About how much of the metadata, which is address space, is in memory.
  [[nodiscard]] std::uint64_t records() const noexcept {
    return resident_metadata(metadata, page_map, page_map_of_spans);
  }
};

/// Copies memory of a process. False: the process is gone, or has no such memory.
using memory_reader = std::function<bool(const void* there, void* into, std::size_t bytes)>;

/// Of a process that holds this record. Nothing: the process is gone.
[[nodiscard]] std::optional<heap_reading> read_heap(const process_record& record, const memory_reader& read);

}  // namespace heapwright::tool
