// The platform that this is compiled for.
#pragma once

#ifdef _WIN32
#include <heapwright/platform/windows/windows_os.hpp>
#else
#include <heapwright/platform/linux/linux_os.hpp>
#endif

namespace heapwright {

#ifdef _WIN32
using native_os = windows_os;
#else
using native_os = linux_os;
#endif

}  // namespace heapwright
