// Memory of the replayer's own: shared mappings, which do not count as anonymous memory. Zeroed.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace heapwright::replay {

[[noreturn]] inline void die(const char* what) noexcept {
  dprintf(STDERR_FILENO, "heapwright-replayer: %s: %s\n", what, std::strerror(errno));
  _exit(1);
}

template <class T>
T* shared_table(std::uint64_t count) noexcept {
  void* const p =
      mmap(nullptr, (count + 1) * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) die("no memory for the replay's own tables");
  return static_cast<T*>(p);
}

}  // namespace heapwright::replay
