// Text for code that must not allocate: a message composed in a fixed buffer and written with one
// system call. What does not fit is cut off, never overrun. Not thread-safe; each message is a
// local variable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <heapwright/core/language.hpp>
#ifdef _WIN32
#include <heapwright/core/windows/write_all.hpp>
#else
#include <heapwright/core/posix/write_all.hpp>
#endif

namespace heapwright {

/// A message of at most `Capacity` bytes. Each `add` appends and returns the text itself.
template <std::size_t Capacity>
class text {
 public:
  /// Appends text that ends in a zero byte.
  [[gnu::noinline]] text& add(const char* s) noexcept {
    while (*s != '\0') put(*s++);
    return *this;
  }

  /// Appends text.
  [[gnu::noinline]] text& add(std::string_view s) noexcept {
    for (const char c : s) put(c);
    return *this;
  }

  /// Appends a number in decimal.
  text& add(std::uint64_t n) noexcept { return digits(n, 10); }

  /// Appends a number, or an address, in hexadecimal with 0x in front.
  text& add_hex(std::uint64_t n) noexcept { return add("0x").digits(n, 16); }

  /// Appends an address, in hexadecimal with 0x in front.
  text& add(const void* p) noexcept { return add_hex(reinterpret_cast<std::uintptr_t>(p)); }

  /// Bytes as a person reads them: "812 B", "64.5 KiB", "1.2 GiB".
  [[gnu::noinline]] text& add_bytes(std::uint64_t n) noexcept {
    constexpr const char* units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    unsigned unit = 0;
    std::uint64_t one = 1;
    while (n / one >= 1024 && unit < 4) one *= 1024, ++unit;
    const std::uint64_t tenths = n / one * 10 + (n % one * 10 + one / 2) / one;
    add(tenths / 10);
    if (unit > 0) add(".").add(tenths % 10);
    return add(units[unit]);
  }

  /// Ends in a zero byte. Valid until the next add.
  [[nodiscard]] const char* c_str() noexcept {
    buffer_[length_] = '\0';
    return buffer_;
  }

  /// Valid until the next add.
  [[nodiscard]] std::string_view view() const noexcept { return {buffer_, length_}; }

  /// Bytes, without the zero at the end.
  [[nodiscard]] std::size_t size() const noexcept { return length_; }

  /// Writes the whole text to a file descriptor; gives up on an error, as there is nobody left to
  /// tell. Keeps errno. A pipe that nobody reads is no SIGPIPE: the program is not writing.
  [[gnu::noinline]] void write_to(int fd) const noexcept { detail::write_all(fd, buffer_, length_); }

 private:
  void put(char c) noexcept {
    if (length_ < Capacity) buffer_[length_++] = c;
  }

  [[gnu::noinline]] text& digits(std::uint64_t n, unsigned base) noexcept {
    char reversed[20];
    unsigned count = 0;
    do {
      reversed[count++] = "0123456789abcdef"[n % base];
      n /= base;
    } while (n != 0);
    while (count > 0) put(reversed[--count]);
    return *this;
  }

  std::size_t length_ = 0;
  char buffer_[Capacity + 1];
};

}  // namespace heapwright
