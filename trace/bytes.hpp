// Numbers and texts as bytes. A number has seven bits per byte, the lowest first; the highest bit
// of a byte says that there are more (LEB128). Signed ones are zigzag: 0, -1, 1, -2, ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace.hpp"

namespace heapwright::trace {

class byte_writer {
 public:
  void number(std::uint64_t n) {
    constexpr std::size_t longest = 10;
    if (bytes_.size() - used_ < longest) [[unlikely]]
      grow(longest);
    std::byte* at = bytes_.data() + used_;
    for (; n >= 0x80; n >>= 7) *at++ = static_cast<std::byte>(n | 0x80);
    *at++ = static_cast<std::byte>(n);
    used_ = static_cast<std::size_t>(at - bytes_.data());
  }
  void difference(std::int64_t n) { number(static_cast<std::uint64_t>(n) << 1 ^ static_cast<std::uint64_t>(n >> 63)); }
  void byte(std::uint8_t b) {
    if (used_ == bytes_.size()) [[unlikely]]
      grow(1);
    bytes_[used_++] = std::byte{b};
  }
  void text(std::string_view t) {
    number(t.size());
    raw(std::as_bytes(std::span(t)));
  }
  void raw(std::span<const std::byte> more) {
    if (bytes_.size() - used_ < more.size()) grow(more.size());
    std::copy(more.begin(), more.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += more.size();
  }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.data(), used_}; }
  [[nodiscard]] std::size_t size() const noexcept { return used_; }
  void clear() noexcept { used_ = 0; }

 private:
  void grow(std::size_t more) { bytes_.resize(2 * bytes_.size() + more); }

  std::vector<std::byte> bytes_;  ///< longer than what is used: an event adds a byte here and one there
  std::size_t used_ = 0;
};

/// Trusts nothing: throws `bad_trace` where there is less than is asked for.
class byte_reader {
 public:
  explicit byte_reader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}

  [[nodiscard]] std::uint64_t number() {
    std::uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = byte();
      n |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return n;
    }
    throw bad_trace("a number has more than 64 bits");
  }
  /// Of 32 bits.
  [[nodiscard]] std::uint32_t small_number() {
    const std::uint64_t n = number();
    if (n > UINT32_MAX) throw bad_trace("a number is too large");
    return static_cast<std::uint32_t>(n);
  }
  [[nodiscard]] std::int64_t difference() {
    const std::uint64_t n = number();
    return static_cast<std::int64_t>(n >> 1 ^ (0 - (n & 1)));
  }
  [[nodiscard]] std::uint8_t byte() { return std::to_integer<std::uint8_t>(raw(1)[0]); }
  [[nodiscard]] std::string text() {
    const auto bytes = raw(number());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] std::span<const std::byte> raw(std::uint64_t count) {
    if (count > left_.size()) throw bad_trace("a part ends too soon");
    const auto bytes = left_.first(count);
    left_ = left_.subspan(count);
    return bytes;
  }

  [[nodiscard]] bool is_at_end() const noexcept { return left_.empty(); }
  [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }

 private:
  std::span<const std::byte> left_;
};

}  // namespace heapwright::trace
