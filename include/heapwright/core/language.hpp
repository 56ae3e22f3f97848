// The language that all headers here are written in: a compiler that is told to read an older one
// says so in one sentence, and stops.
#pragma once

#if __cplusplus < 202002L
// Not a header: a fatal error whose text is the name, and no other errors after it. After #error,
// compilers would go on.
#include <Heapwright needs C++20: compile with -std=c++20 or newer>
#endif
