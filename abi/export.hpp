// Everything in the library is hidden but the entries that replace libc's and libstdc++'s, and the
// process record.
#pragma once

#define HEAPWRIGHT_EXPORT [[gnu::visibility("default")]]
