// Python's code objects that stacks name, in the segment: each once, with its name, its file and
// its table of lines.
//
// A code object may be freed, and its memory may have another one later. So it is known by its
// address and its version: a hash of what it consists of.
//
// A hash table in memory of the process's own says which record a code object has. Entries are only
// added: looking one up takes no lock. A child that was forked has this memory too, and the records
// of its segment are at the places of the parent's.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "python_layout.hpp"
#include "segment_writer.hpp"

namespace heapwright::probe {

class python_codes {
 public:
  /// Records go to this segment from now on.
  void reset(segment::segment_header& h) noexcept;

  /// Takes over the records that the parent's segment had at the fork.
  void inherit_from(segment::segment_header& parents) noexcept;

  /// The record of the code object at `code`; 0: there is no room for one. Nothing: what is there
  /// cannot be a code object. `text_type`: of Python's texts. Reads nothing that is not mapped.
  [[nodiscard]] std::optional<segment::reference> find_or_add(std::uintptr_t code, const python_layout& layout,
                                                              std::uintptr_t text_type) noexcept;

  void lock_for_fork() noexcept;
  void unlock_in_parent() noexcept;
  void unlock_in_child() noexcept;

 private:
  /// `code` is written last: with it the others are there.
  struct entry {
    std::atomic<std::uintptr_t> code;
    std::uint64_t version;
    segment::reference at;
  };
  static constexpr std::size_t entry_count = 1 << 16;

  static constexpr unsigned most_steps = 64;

  growing_part part_;
  std::atomic<entry*> entries_{nullptr};
  std::uint64_t used_at_fork_ = 0;
  process_lock lock_;
};

}  // namespace heapwright::probe
