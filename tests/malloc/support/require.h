// What a test program of its own process must see. A failed REQUIRE names the condition and the
// place, and ends the process at once with exit code 1, without destructors: they could hang in the
// state that was found.
#pragma once

#include <stdio.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The exit code that ctest counts as "skipped"; the reason goes to stderr first.
enum { exit_skipped = 77 };

static inline void require_failed(const char* condition, const char* file, int line) {
  char message[500];
  const int n = snprintf(message, sizeof message, "%s:%d: required: %s\n", file, line, condition);
  if (n > 0 && write(2, message, (size_t)n) < 0) _exit(2);
  _exit(1);
}

#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(#condition, __FILE__, __LINE__))

#ifdef __cplusplus
}
#endif
