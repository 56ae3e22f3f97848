// What a process on libheapwright says of itself and its heap: when it exits (HEAPWRIGHT_STATS), or
// when it is asked (malloc_stats).
//
// With HEAPWRIGHT_STATS_FILE each process appends its report, as it lies in memory, to that file:
// whole, as it is one write to a file opened for appending. `heapwright run --stats` reads them
// there.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/text.hpp>

namespace heapwright {

/// All in bytes, but for the threads. mapped = small_in_use + large_in_use + cached + free_in_spans
/// + free_resident + free_decommitted.
struct malloc_statistics {
  std::uint64_t mapped;             ///< address space held for blocks
  std::uint64_t mapped_peak;        ///< the most that `mapped` ever was
  std::uint64_t small_in_use;       ///< in live blocks that are cut from spans
  std::uint64_t large_in_use;       ///< in live blocks that are a run of pages each
  std::uint64_t cached;             ///< free, in the caches of all threads
  std::uint64_t free_in_spans;      ///< free or never used, within spans cut into blocks
  std::uint64_t free_resident;      ///< free pages, not given back; those never touched are not in memory
  std::uint64_t free_decommitted;   ///< free pages, given back to the system or never touched
  std::uint64_t metadata_reserved;  ///< address space of the heap's own records, beside `mapped`
  std::uint64_t metadata_resident;  ///< about how much of that is in memory
  std::uint64_t decommitted_total;  ///< given back to the system so far
  std::uint64_t threads;            ///< that have a cache
  std::uint64_t threads_total;      ///< that ever had one

  /// Bytes in blocks of the program, small and large.
  [[nodiscard]] std::uint64_t in_use() const noexcept { return small_in_use + large_in_use; }
};

/// What a process has used, as it appends it to HEAPWRIGHT_STATS_FILE: the bytes of this struct.
struct process_report {
  /// What `magic` is in this version.
  static constexpr char expected_magic[16] = "heapwright rep1";

  char magic[16];            ///< expected_magic
  std::uint32_t bytes;       ///< sizeof(process_report)
  std::uint32_t process_id;  ///< of the process that wrote it
  char version[32];          ///< of the library, "0.1.0"
  char build[32];            ///< "release", "checked" or "debug"
  char command[256];         ///< its words with spaces between them, cut off where it is longer
  std::uint64_t peak_rss;    ///< bytes, since the last exec; since fork where there is no /proc
  malloc_statistics heap;    ///< as malloc_stats shows them

  /// As a page for people.
  template <std::size_t N>
  void write_page(text<N>& out) const noexcept {
    const auto row = [&](const char* name, std::uint64_t n) { out.add("  ").add(name).add_bytes(n).add("\n"); };
    out.add("heapwright ").add(version).add(" (").add(build).add("), process ").add(std::uint64_t{process_id});
    out.add(": ").add(command).add("\n");
    row("mapped                     ", heap.mapped);
    row("  blocks in use            ", heap.in_use());
    row("    small                  ", heap.small_in_use);
    row("    large                  ", heap.large_in_use);
    row("  thread caches            ", heap.cached);
    row("  free within spans        ", heap.free_in_spans);
    row("  free, not given back     ", heap.free_resident);
    row("  free, given back or new  ", heap.free_decommitted);
    row("records, in memory         ", heap.metadata_resident);
    row("records, reserved          ", heap.metadata_reserved);
    row("mapped at the peak         ", heap.mapped_peak);
    row("given back so far          ", heap.decommitted_total);
    row("RSS at the peak            ", peak_rss);
    out.add("  threads now ").add(heap.threads).add(", ever ").add(heap.threads_total).add("\n");
    out.add("  new: never touched; free, not given back: pages of it that were never touched are not in memory\n");
  }
};

}  // namespace heapwright
