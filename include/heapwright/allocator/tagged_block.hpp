// A block of the best-fit heap: what its words mean, and how a block finds its neighbours.
//
//   live   [ tag | payload ..................... ]  ends where the next tag begins
//   free   [ tag | next | prev | ....... | size  ]  the links belong to its slot or to the tree
//
//   tag    [ slack or seal: 16 bits | size in 16 bytes: 44 bits | flags: 4 bits ]
//
// Tags lie 8 bytes before a multiple of 16, so that payloads are aligned and hold 16k + 8 bytes.
// The size includes the tag. The slack of a live block is what its payload has beyond the bytes
// asked for; builds that look for misuse have a seal in its place, and the bytes asked for in the
// block's guard. Boundary tags: Knuth, The Art of Computer Programming 1, 2.5.
//
// Invariant: the size repeated at the end of a free block is read only where the next tag says that
// the block before it is free.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/core/poison.hpp>

namespace heapwright {

class tagged_block {
 public:
  /// Misuse is looked for in checked builds, and where AddressSanitizer or Valgrind watch: they see
  /// no free of a pointer that lies in memory which is not malloc's.
  static constexpr bool is_checked = checks_callers || poisons;

  static constexpr std::size_t tag_bytes = 8;
  static constexpr std::size_t smallest = 32;  ///< tag, two links and the size at the end

  [[nodiscard]] static tagged_block* at(std::uintptr_t address) noexcept {
    return reinterpret_cast<tagged_block*>(address);
  }

  [[nodiscard]] static tagged_block* of(const void* payload) noexcept { return at(address_of(payload) - tag_bytes); }

  [[nodiscard]] void* payload() noexcept { return &next; }

  [[nodiscard]] std::size_t size() const noexcept { return tag_ & size_mask; }
  [[nodiscard]] std::size_t payload_bytes() const noexcept { return size() - tag_bytes; }
  [[nodiscard]] bool is_free() const noexcept { return (tag_ & free_flag) != 0; }
  [[nodiscard]] bool follows_free() const noexcept { return (tag_ & follows_free_flag) != 0; }

  [[nodiscard]] tagged_block* following() const noexcept { return at(address_of(this) + size()); }

  /// Precondition: follows_free().
  [[nodiscard]] tagged_block* preceding() const noexcept {
    return at(address_of(this) - *reinterpret_cast<const hidden<std::size_t>*>(address_of(this) - sizeof(std::size_t)));
  }

  /// Bytes of the payload that were not asked for. 0 if is_checked.
  [[nodiscard]] std::size_t slack() const noexcept { return is_checked ? 0 : tag_ >> upper_shift; }

  void set_live(std::size_t bytes, std::size_t slack = 0) noexcept { tag_ = bytes | shifted(slack) | seal(); }
  void set_free(std::size_t bytes) noexcept { tag_ = bytes | free_flag | seal(); }
  void set_flag_free() noexcept { tag_ = tag_ | free_flag; }

  /// Keeps size and flags.
  void set_slack(std::size_t slack) noexcept {
    if constexpr (!is_checked) tag_ = (tag_ & (size_mask | flags)) | shifted(slack);
  }

  /// Keeps the rest.
  void set_size(std::size_t bytes) noexcept { tag_ = (tag_ & ~size_mask) | bytes; }

  void set_follows_free() noexcept { tag_ = tag_ | follows_free_flag; }
  void clear_follows_free() noexcept { tag_ = tag_ & ~follows_free_flag; }

  /// Repeats the size at the end, for the next block to find this one.
  void write_size_at_end(std::size_t bytes) noexcept {
    *reinterpret_cast<hidden<std::size_t>*>(address_of(this) + bytes - sizeof(std::size_t)) = bytes;
  }

  /// If is_checked: whether a tag was written here. What else the memory may hold passes once in
  /// 65,536.
  [[nodiscard]] bool is_sealed() const noexcept { return !is_checked || (tag_ & ~(size_mask | flags)) == seal(); }

 private:
  static constexpr std::uint64_t free_flag = 1;
  static constexpr std::uint64_t follows_free_flag = 2;
  static constexpr std::uint64_t flags = 15;
  // No address space has sizes that need the 16 bits above.
  static constexpr int upper_shift = 48;
  static constexpr std::uint64_t size_mask = ((std::uint64_t{1} << upper_shift) - 1) & ~flags;

  [[nodiscard]] static constexpr std::uint64_t shifted(std::size_t slack) noexcept {
    return is_checked ? 0 : std::uint64_t{slack} << upper_shift;
  }

  [[nodiscard]] std::uint64_t seal() const noexcept {
    if constexpr (!is_checked) return 0;
    return fibonacci_hash(address_of(this)) & ~(size_mask | flags);
  }

  hidden<std::uint64_t> tag_;

 public:
  // Of a free block.
  hidden<tagged_block*> next;
  hidden<tagged_block*> prev;
};

}  // namespace heapwright
