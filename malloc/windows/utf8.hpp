// Text of Windows as others read it.
#pragma once

#include "windows_headers.hpp"

namespace heapwright::process {

/// As UTF-8, cut off where it is longer than there is room, and ended by 0.
inline void copy_as_utf8(const wchar_t* from, char* to, int room) noexcept {
  const int length = ::WideCharToMultiByte(CP_UTF8, 0, from, -1, to, room, nullptr, nullptr);
  to[length > 0 ? length - 1 : room - 1] = '\0';
}

}  // namespace heapwright::process
