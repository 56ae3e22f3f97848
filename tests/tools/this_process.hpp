// What the test's own process is, by other means than the tool's.
#pragma once

#include <cstdlib>
#include <string>

#include <dlfcn.h>

namespace heapwright::tool {

/// The file whose malloc this process runs on: libc's, or the sanitizer's.
inline std::string file_of_malloc() {
  Dl_info about{};
  return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &about) == 0 ? "" : about.dli_fname;
}

}  // namespace heapwright::tool
