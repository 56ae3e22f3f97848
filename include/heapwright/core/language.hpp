// The language that all headers here are written in, and the systems that they are for: a compiler
// that is told to read an older one, or to compile for another, says so in one sentence, and stops.
#pragma once

#if __cplusplus < 202002L
// Not a header: a fatal error whose text is the name, and no other errors after it. After #error,
// compilers would go on.
#include <Heapwright needs C++20: compile with -std=c++20 or newer>
#elif __SIZEOF_POINTER__ < 8
// Addresses share a word with a count or a tag.
#include <Heapwright needs pointers of 64 bits: compile for a 64-bit system>
#endif
