// How much memory the process has resident, as the kernel counts it. smaps_rollup walks the page
// tables, so it is exact; the counters in status and statm lag behind by some hundred KiB on
// several processors. Read without allocating.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "require.h"

/// The field "NAME:  n kB" of a file below /proc/self, in bytes.
static inline size_t proc_self_bytes(const char* file, const char* name) {
  char text[4096];
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  size_t length = 0;
  for (ssize_t n; length < sizeof text - 1 && (n = read(fd, text + length, sizeof text - 1 - length)) > 0;)
    length += (size_t)n;
  close(fd);
  text[length] = '\0';
  const char* const field = strstr(text, name);
  REQUIRE(field != NULL);
  return (size_t)strtoull(field + strlen(name), NULL, 10) * 1024;
}

static inline size_t resident_bytes(void) { return proc_self_bytes("/proc/self/smaps_rollup", "\nRss:"); }
static inline size_t peak_resident_bytes(void) { return proc_self_bytes("/proc/self/status", "\nVmHWM:"); }
static inline size_t address_space_bytes(void) { return proc_self_bytes("/proc/self/status", "\nVmSize:"); }
