// How much memory of a process is anonymous and could be its heap: resident pages that belong to no
// file, less its main thread's stack. And whether the process has rings: after an exec
// without the probe it has none, and its memory is another program's.
//
// /proc/PID/statm is cheaper, and off by up to some hundred KiB for each processor since Linux 6.2;
// smaps_rollup is exact, and has the data of programs and libraries in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace heapwright::trace {

/// Reads the text of an smaps file, piece by piece.
class smaps_reader {
 public:
  void read(const char* text, std::size_t length) noexcept {
    for (std::size_t i = 0; i < length; ++i) {
      if (text[i] != '\n') {
        if (length_ < sizeof line_ - 1) line_[length_++] = text[i];
        continue;
      }
      line_[length_] = '\0';
      take_line();
      length_ = 0;
    }
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Whether the process has rings: it is recorded.
  [[nodiscard]] bool has_rings() const noexcept { return has_rings_; }

 private:
  /// Of a mapping: its head, "7f00-7f10 rw-p 00000000 00:00 0 /a/path"; then a line for each
  /// figure.
  void take_line() noexcept {
    constexpr char name[] = "Anonymous:";
    if (line_[0] >= 'A' && line_[0] <= 'Z') {
      if (is_counted_ && std::strncmp(line_, name, sizeof name - 1) == 0)
        bytes_ += std::strtoull(line_ + sizeof name - 1, nullptr, 10) * 1024;
      return;
    }
    is_counted_ = std::strchr(line_, '/') == nullptr && std::strstr(line_, "[stack]") == nullptr;
    has_rings_ = has_rings_ || std::strstr(line_, ".rings") != nullptr;
  }

  char line_[1280];  ///< longer than the path of rings; other paths may be cut off
  std::size_t length_ = 0;
  std::uint64_t bytes_ = 0;
  bool is_counted_ = false, has_rings_ = false;
};

struct memory_look {
  std::uint64_t anonymous = 0;  ///< bytes
  bool has_rings = false;
};

/// `smaps`: /proc/PID/smaps. Zeros: it cannot be read. Does not allocate; takes some nanoseconds
/// for each page of the process, and some microseconds for each mapping.
[[nodiscard]] inline memory_look look_at_memory(const char* smaps) noexcept {
  const int fd = ::open(smaps, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  smaps_reader reader;
  char piece[4096];
  for (ssize_t n = 0; (n = ::read(fd, piece, sizeof piece)) > 0;) reader.read(piece, static_cast<std::size_t>(n));
  ::close(fd);
  return {reader.bytes(), reader.has_rings()};
}

[[nodiscard]] inline std::uint64_t anonymous_bytes(const char* smaps) noexcept {
  return look_at_memory(smaps).anonymous;
}

}  // namespace heapwright::trace
