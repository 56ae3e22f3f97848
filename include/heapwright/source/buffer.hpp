// A caller's buffer as a source: ranges of it by a pointer that moves up.
//
//   [ handed out ... | free ... ]
//                    ^--- cursor_
//
// Invariant: begin <= cursor_ <= end of the buffer. Only the latest range moves the cursor back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/poison.hpp>

namespace heapwright {

/// Ranges of a buffer, which must outlive it and may have any size and alignment. Not thread-safe.
/// Null when the rest of the buffer is too small. Everything is O(1). Neither copied nor moved:
/// share it as `upstream<buffer_source>`.
class buffer_source {
 public:
  /// Draws from this buffer, which must outlive the object.
  explicit buffer_source(std::span<std::byte> buffer) noexcept : buffer_(buffer), cursor_(begin()) {
    poison(buffer.data(), buffer.size());
  }

  ~buffer_source() { unpoison(buffer_.data(), buffer_.size()); }

  buffer_source(const buffer_source&) = delete;
  buffer_source& operator=(const buffer_source&) = delete;

  /// As the concept allocator says. Null when the rest of the buffer is too small. A range of no
  /// bytes takes one. O(1).
  [[nodiscard]] void* allocate(layout l) noexcept {
    const std::uintptr_t first = align_up(cursor_, l.alignment);
    if (first < cursor_ || first > end() || end() - first < taken(l)) return nullptr;
    cursor_ = first + taken(l);
    void* const p = reinterpret_cast<void*>(first);
    unpoison(p, l.size);
    return p;
  }

  /// Takes the range back if it is the latest one, but for what its alignment skipped; otherwise it
  /// stays lost until the reset.
  void deallocate(void* p, layout l) noexcept {
    if (p == nullptr) return;
    if constexpr (checks_callers) {
      if (!owns(p)) die("free of a foreign pointer", p, "(not a range of this buffer)");
    }
    poison(p, l.size);
    if (address_of(p) + taken(l) == cursor_) cursor_ = address_of(p);
  }

  /// Whether p points into what is handed out.
  [[nodiscard]] bool owns(const void* p) const noexcept { return address_of(p) - begin() < cursor_ - begin(); }

  /// Frees all ranges.
  void reset() noexcept {
    cursor_ = begin();
    poison(buffer_.data(), buffer_.size());
  }

 private:
  /// An address belongs to one range alone, also of ranges without bytes.
  [[nodiscard]] static std::size_t taken(layout l) noexcept { return std::max<std::size_t>(l.size, 1); }

  [[nodiscard]] std::uintptr_t begin() const noexcept { return address_of(buffer_.data()); }
  [[nodiscard]] std::uintptr_t end() const noexcept { return begin() + buffer_.size(); }

  std::span<std::byte> buffer_;
  std::uintptr_t cursor_;
};

static_assert(allocator<buffer_source> && can_own<buffer_source> && can_reset<buffer_source>);

}  // namespace heapwright
