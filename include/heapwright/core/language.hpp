// The language that all headers here are written in: a compiler that is told to read an older one
// says so in one sentence, and stops.
#pragma once

#if __cplusplus < 202002L
#error "Heapwright needs C++20: compile with -std=c++20 or newer"
#include <heapwright needs C++20>  // Not a header. Ends the compilation here, before thousands of other errors.
#endif
