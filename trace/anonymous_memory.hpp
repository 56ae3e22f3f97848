// How much anonymous memory of a process is resident.
//
// /proc/PID/statm is cheaper, and off by up to some hundred KiB for each processor since Linux 6.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace heapwright::trace {

/// Bytes, exact. `rollup`: /proc/PID/smaps_rollup. 0: it cannot be read. Does not allocate; takes
/// some nanoseconds for each page of the process.
[[nodiscard]] inline std::uint64_t anonymous_bytes(const char* rollup) noexcept {
  const int fd = ::open(rollup, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char content[4096];
  std::size_t length = 0;
  for (ssize_t n = 1; n > 0 && length < sizeof content - 1; length += n > 0 ? static_cast<std::size_t>(n) : 0)
    n = ::read(fd, content + length, sizeof content - 1 - length);
  ::close(fd);
  content[length] = '\0';
  constexpr char name[] = "\nAnonymous:";
  const char* const line = std::strstr(content, name);
  return line == nullptr ? 0 : std::strtoull(line + sizeof name - 1, nullptr, 10) * 1024;
}

}  // namespace heapwright::trace
