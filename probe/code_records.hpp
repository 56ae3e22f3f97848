// Interpreted code that stacks name, in the segment: each once, with its name, its file and, of
// Python, its table of lines.
//
// Code may be freed, and its memory may have other code later. So it is known by its address and
// its version: a hash of what it consists of.
//
// A hash table in memory of the process's own says which record some code has. Entries are only
// added: looking one up takes no lock. A child that was forked has this memory too, and the records
// of its segment are at the places of the parent's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include <heapwright/core/hash.hpp>

#include "segment_writer.hpp"

namespace heapwright::probe {

/// A text of a record; cut where it is longer than there is room.
template <std::size_t Room>
class bounded_text {
 public:
  [[nodiscard]] const char* data() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

  /// False: it is full.
  bool add(const char* text, std::size_t bytes) noexcept {
    const std::size_t fits = bytes <= Room - size_ ? bytes : Room - size_;
    std::memcpy(bytes_ + size_, text, fits);
    size_ += static_cast<std::uint32_t>(fits);
    return fits == bytes;
  }
  bool add(const char* text) noexcept { return add(text, std::strlen(text)); }

 private:
  char bytes_[Room];
  std::uint32_t size_ = 0;
};

/// Code as it goes into its record.
struct described_code {
  bounded_text<256> name;
  bounded_text<1024> file;
  std::int32_t first_line = 0;  ///< 0: not known
  segment::line_table lines = segment::line_table::line_of_call;
  std::uintptr_t table = 0;       ///< where its table of lines is
  std::uint32_t table_bytes = 0;  ///< 0: none that can be kept
};

/// One step of a version.
[[nodiscard]] inline std::uint64_t mixed_into(std::uint64_t version, std::uint64_t word) noexcept {
  const std::uint64_t hash = fibonacci_hash(version ^ word);
  return hash ^ hash >> 32;
}

class code_records {
 public:
  /// Records go to this segment from now on.
  void reset(segment::segment_header& h) noexcept;

  /// Takes over the records that the parent's segment had at the fork.
  void inherit_from(segment::segment_header& parents) noexcept;

  /// The record of the code at `code`, which is not 0; 0: there is no room for one. Nothing:
  /// `describe(described_code&)`, which is called where there is no record yet, has said that what
  /// is there cannot be code.
  template <class Describe>
  [[nodiscard]] std::optional<segment::reference> find_or_add(std::uintptr_t code, std::uint64_t version,
                                                              Describe describe) noexcept {
    if (const auto known = find(code, version)) return known;
    described_code is;
    if (!describe(is)) return std::nullopt;
    return add(code, version, is);
  }

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

  [[nodiscard]] static entry* place_in(entry* entries, std::uintptr_t code, std::uint64_t version) noexcept;
  [[nodiscard]] std::optional<segment::reference> find(std::uintptr_t code, std::uint64_t version) const noexcept;
  [[nodiscard]] segment::reference add(std::uintptr_t code, std::uint64_t version, const described_code& is) noexcept;
  [[nodiscard]] segment::reference write(const described_code& is) noexcept;

  growing_part part_;
  std::atomic<entry*> entries_{nullptr};
  std::uint64_t used_at_fork_ = 0;
  process_lock lock_;
};

}  // namespace heapwright::probe
