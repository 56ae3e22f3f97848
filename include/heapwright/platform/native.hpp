// The platform that this is compiled for.
#pragma once

#ifdef _WIN32
#include <heapwright/platform/windows/windows_os.hpp>
#elif defined(__APPLE__)
#include <heapwright/platform/macos/macos_os.hpp>
#else
#include <heapwright/platform/linux/linux_os.hpp>
#endif

namespace heapwright {

#ifdef _WIN32
using native_os = windows_os;
#elif defined(__APPLE__)
using native_os = macos_os;
#else
using native_os = linux_os;
#endif

}  // namespace heapwright
