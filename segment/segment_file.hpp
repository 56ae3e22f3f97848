// The bytes of a segment, for those who trust nothing that is in it.
//
// Everything read is a copy, made by the kernel: a file that is cut off while it is read gives
// short reads, where a mapping would give SIGBUS. What is beyond the end of the file is not there,
// so a length from the file needs no other check than that it cannot overflow. The kernel copies
// words of eight bytes, at their own alignment, as whole; and it orders memory with each page that
// it takes hold of, so reads happen in the order of calls.
//
// Only the header is ever mapped, to be written to: marks are counted by the program too, which
// takes an atomic addition. Its length is checked right before each write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "segment.hpp"

namespace heapwright::segment {

class segment_file {
 public:
  /// Throws bad_segment.
  segment_file(std::filesystem::path path, bool may_control);
  segment_file(const segment_file&) = delete;
  segment_file& operator=(const segment_file&) = delete;
  ~segment_file();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// A copy of the header; throws bad_segment if it is not one that this reader understands.
  [[nodiscard]] std::unique_ptr<segment_header> header() const;
  /// The header itself, to be written to. Throws bad_segment if it is gone, std::logic_error if the
  /// file may not be controlled.
  [[nodiscard]] segment_header& control();

  /// How many of the bytes asked for there are.
  [[nodiscard]] std::size_t read(std::uint64_t offset, void* into, std::size_t bytes) const noexcept;

  /// Calls `each` with the index and the bytes of each whole record in `bytes` from `offset`. Holes
  /// of the file, which are all zero, are passed over: the time is that for what the file really
  /// holds.
  void for_each_record(std::uint64_t offset, std::uint64_t bytes, std::size_t record_bytes,
                       const std::function<void(std::uint64_t, const std::byte*)>& each) const;

 private:
  /// The first byte at or after `offset` that is not in a hole; UINT64_MAX: none.
  [[nodiscard]] std::uint64_t next_data(std::uint64_t offset) const noexcept;

  std::filesystem::path path_;
  int fd_ = -1;
  segment_header* control_ = nullptr;
};

/// Reads records that lie anywhere in a file, near to each other as a rule.
class record_window {
 public:
  explicit record_window(const segment_file& file) : file_(file) {}

  static constexpr std::size_t longest = 16 * 1024;

  /// Valid until the next call; null if the file does not have as much. Aligned to 16, if all
  /// offsets asked for are equal modulo 16.
  [[nodiscard]] const std::byte* at(std::uint64_t offset, std::size_t bytes);

 private:
  struct alignas(64) line {
    std::byte bytes[64];
  };

  const segment_file& file_;
  std::vector<line> lines_{longest / sizeof(line)};
  std::uint64_t begin_ = 0;
  std::size_t length_ = 0;
};

}  // namespace heapwright::segment
