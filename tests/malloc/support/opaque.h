// Hides a value from the optimiser, which knows malloc and would remove pairs of malloc and free,
// or warn of sizes that fail.
#pragma once

#include <stddef.h>

static inline size_t opaque_size(size_t n) {
  __asm__ volatile("" : "+r"(n));
  return n;
}

static inline void* opaque(void* p) {
  __asm__ volatile("" : "+r"(p) : : "memory");
  return p;
}
