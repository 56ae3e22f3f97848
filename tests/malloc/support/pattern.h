// Contents that say which block they belong to: a test fills each block with the pattern of its own
// seed and looks for it before giving the block back. Two blocks that overlap, or memory that was
// dropped, do not hold both patterns.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t pattern_word(uint64_t seed, size_t index) {
  return (seed + index) * 0x9E3779B97F4A7C15U + 0x0123456789ABCDEFU;
}

/// Writes bytes [from, size) of the pattern.
static inline void pattern_fill(void* p, size_t size, uint64_t seed, size_t from) {
  unsigned char* const bytes = (unsigned char*)p;
  size_t i = from;
  for (; i < size && i % 8 != 0; ++i) bytes[i] = (unsigned char)(pattern_word(seed, i / 8) >> (i % 8 * 8));
  for (; i + 8 <= size; i += 8) {
    const uint64_t word = pattern_word(seed, i / 8);
    memcpy(bytes + i, &word, 8);
  }
  for (; i < size; ++i) bytes[i] = (unsigned char)(pattern_word(seed, i / 8) >> (i % 8 * 8));
}

/// Whether bytes [0, size) are the pattern's.
static inline bool pattern_holds(const void* p, size_t size, uint64_t seed) {
  const unsigned char* const bytes = (const unsigned char*)p;
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const uint64_t expected = pattern_word(seed, i / 8);
    if (memcmp(bytes + i, &expected, 8) != 0) return false;
  }
  for (; i < size; ++i) {
    if (bytes[i] != (unsigned char)(pattern_word(seed, i / 8) >> (i % 8 * 8))) return false;
  }
  return true;
}

static inline bool all_zero(const void* p, size_t size) {
  const unsigned char* const bytes = (const unsigned char*)p;
  return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}
