// What glibc has of late, and older ones do without: looked up by name, so that the probe loads on
// all.
//
// States      not looked up, then looked up for ever; look_up_newer_libc() goes from one to the
//             other
// Invariant   every function here answers correctly in both states, only more slowly in the first
#pragma once

#include <cstdint>

#include "call_frame_info.hpp"

namespace heapwright::probe {

/// May be called more than once, from one thread at a time. dlsym may call malloc.
void look_up_newer_libc() noexcept;

/// Returns the .eh_frame_hdr of what is mapped at `pc`, or null. `object` says what that is; it
/// stays as it was if nothing is. Since glibc 2.35 it takes no lock: neither a thread in dlopen nor
/// a fork in the middle of one can delay it. Before, it takes the loader's.
[[nodiscard]] const std::uint8_t* find_code_object(std::uintptr_t pc, code_object& object) noexcept;

/// libc's flag, or one that is always 0.
extern constinit const char* single_threaded_flag [[gnu::visibility("hidden")]];

/// False may be wrong, true never is.
[[nodiscard]] inline bool is_single_threaded() noexcept { return *single_threaded_flag != 0; }

}  // namespace heapwright::probe
