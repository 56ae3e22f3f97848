// What glibc has of late, and older ones do without: looked up by name, so that the probe loads on
// all.
#pragma once

namespace heapwright::probe {

/// May be called more than once, from one thread at a time. dlsym may call malloc.
void look_up_newer_libc() noexcept;

/// libc's flag, or one that is always 0.
extern constinit const char* single_threaded_flag [[gnu::visibility("hidden")]];

/// False may be wrong, true never is.
[[nodiscard]] inline bool is_single_threaded() noexcept { return *single_threaded_flag != 0; }

}  // namespace heapwright::probe
