// Memory that may not be there.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

namespace heapwright::unwind {

/// Whether the eight bytes at `address` can be read. The kernel reads them as a set of signals, for
/// a change of the signal mask that does not exist: so it changes nothing, and says whether it
/// could read. Some hundred nanoseconds.
[[nodiscard]] inline bool is_readable(std::uintptr_t address) noexcept {
  constexpr int no_such_change = -1;
  const int before = errno;
  const bool is =
      ::syscall(SYS_rt_sigprocmask, no_such_change, address, nullptr, std::size_t{8}) != 0 && errno == EINVAL;
  errno = before;
  return is;
}

/// Whether all of these bytes can. `bytes` > 0; pages have at least 4 KiB.
[[nodiscard]] inline bool is_readable(std::uintptr_t address, std::size_t bytes) noexcept {
  constexpr std::uintptr_t page = 4096;
  if (address + bytes < address) return false;
  for (std::uintptr_t at = address & -page; at < address + bytes; at += page)
    if (!is_readable(at)) return false;
  return true;
}

}  // namespace heapwright::unwind
