// A trace is a beginning of 16 bytes, and chunks. A chunk is a head of 40 bytes and a payload that
// zstd has packed. The hash of both is in the head, so that a chunk that was not written to its
// end, or was damaged, is told from a whole one. All numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heapwright::trace {

/// Behind it, the version as four bytes.
inline constexpr std::array<char, 12> file_mark{'h', 'e', 'a', 'p', 'w', 'r', 'i', 'g', 'h', 't', ' ', 't'};

enum class chunk_kind : std::uint32_t {
  process = 1,
  stacks = 2,
  modules = 3,
  events = 4,
  note = 5,
  ending = 6,
  memory = 7,
  touched = 8,
  codes = 9
};

/// Flags in the payload of an ending.
inline constexpr std::uint64_t is_a_piece = 1, is_of_a_torn_trace = 2;

struct chunk_head {
  static constexpr std::uint32_t right_mark = 0x43545748;  // "HWTC"

  std::uint32_t mark = right_mark;
  std::uint32_t kind = 0;  ///< chunk_kind; readers leave out what they do not know
  std::uint32_t process = 0, thread = 0, round = 0;
  std::uint32_t bytes = 0;         ///< of the payload
  std::uint32_t packed_bytes = 0;  ///< as it is in the file
  std::uint32_t unused = 0;
  std::uint64_t hash = 0;  ///< XXH3 of the head before it, then of the packed payload
};
static_assert(sizeof(chunk_head) == 40);

/// Of a payload, in bytes; and of events in one. A reader takes more for damage.
inline constexpr std::uint32_t longest_chunk = 16 << 20;
inline constexpr std::uint32_t most_events = 1 << 18;

/// The beginning of a trace of this version.
[[nodiscard]] std::array<std::byte, 16> file_beginning() noexcept;

/// The hash that belongs into this head.
[[nodiscard]] std::uint64_t hash_of(const chunk_head& head, std::span<const std::byte> packed) noexcept;

class chunk_packer {
 public:
  chunk_packer();
  chunk_packer(const chunk_packer&) = delete;
  chunk_packer& operator=(const chunk_packer&) = delete;
  ~chunk_packer();

  /// Head and packed payload, as they belong into the file. The head says kind and whose it is.
  [[nodiscard]] std::span<const std::byte> pack(chunk_head head, std::span<const std::byte> payload);

 private:
  void* context_;
  std::vector<std::byte> packed_;
};

/// Empty: it cannot be unpacked to so many bytes.
[[nodiscard]] std::vector<std::byte> unpack(std::span<const std::byte> packed, std::uint32_t bytes);

}  // namespace heapwright::trace
