// Where the file that this is linked into begins and ends in memory: the program, or a library. The
// linker defines these.
#pragma once

#include <heapwright/core/language.hpp>

extern "C" {
[[gnu::visibility("hidden"), gnu::weak]] extern const char __ehdr_start[];
[[gnu::visibility("hidden"), gnu::weak]] extern const char _end[];
}
