// Writing to a file descriptor of the program's C library, by Windows itself: what is written is
// not changed, and nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/windows/system_functions.hpp>

namespace heapwright::detail {

/// Gives up on an error. Keeps the last error.
inline void write_all(int fd, const char* from, std::size_t bytes) noexcept {
  const unsigned long kept = ::GetLastError();
  // A library may have another C library than the program, with descriptors of its own.
  constexpr int standard_error = 2;
  constexpr unsigned long its_handle = static_cast<unsigned long>(-12);
  void* const file = fd == standard_error ? ::GetStdHandle(its_handle) : reinterpret_cast<void*>(::_get_osfhandle(fd));
  unsigned long written = 0;
  for (std::size_t done = 0; done < bytes; done += written) {
    if (::WriteFile(file, from + done, static_cast<unsigned long>(bytes - done), &written, nullptr) == 0 ||
        written == 0)
      break;
  }
  ::SetLastError(kept);
}

}  // namespace heapwright::detail
