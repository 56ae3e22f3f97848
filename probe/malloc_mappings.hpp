// Which memory the malloc below has mapped for itself, in the segment: a leak scan must not take
// its records and its free memory for the program's own.
//
// Calls of mmap, munmap and mremap from the malloc's library are noted (mapping_entries.cpp). Those
// of libc's malloc do not come by, and those of a malloc within the program cannot be told from the
// program's own: of these nothing is known.
//
// Only the malloc unmaps what it has mapped, as mapping_table.hpp asks for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../segment/segment.hpp"

namespace heapwright::probe {

class malloc_mappings {
 public:
  /// The library's code; of an empty one nothing is noted.
  void learn(std::uintptr_t begin, std::uintptr_t end) noexcept {
    begin_ = begin;
    end_ = end;
  }
  [[nodiscard]] bool is_caller(const void* code) const noexcept {
    return reinterpret_cast<std::uintptr_t>(code) - begin_ < end_ - begin_;
  }

  static void add(const void* p, std::size_t bytes) noexcept;
  /// Any part of what was added.
  static void remove(const void* p, std::size_t bytes) noexcept;

  static void copy(const segment::segment_header& from, segment::segment_header& to) noexcept;

 private:
  std::uintptr_t begin_ = 0, end_ = 0;
};

/// Once the malloc below is known.
void find_next_mappings() noexcept;

extern constinit malloc_mappings the_mappings [[gnu::visibility("hidden")]];

}  // namespace heapwright::probe
