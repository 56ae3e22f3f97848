// What the process's heap can say about itself, as numbers and as text.
#pragma once

#include <cstdint>

namespace heapwright::process {

/// All in bytes. mapped = in_use + cached + free_in_spans + free_resident + free_returned.
struct statistics {
  std::uint64_t mapped;  ///< address space held for blocks
  std::uint64_t mapped_peak;
  std::uint64_t small_in_use;   ///< in blocks of a size class, with the program (or in the stock of another thread)
  std::uint64_t large_in_use;   ///< in blocks of their own pages
  std::uint64_t cached;         ///< in the calling thread's stock
  std::uint64_t free_in_spans;  ///< free or never used, within spans cut into blocks
  std::uint64_t free_resident;
  std::uint64_t free_returned;
  std::uint64_t metadata;  ///< beside `mapped`
  std::uint64_t returned_total;
  std::uint64_t threads;
  std::uint64_t threads_total;
};

[[nodiscard]] statistics collect_statistics() noexcept;

/// As a table for people.
void write_statistics(int fd) noexcept;

}  // namespace heapwright::process
