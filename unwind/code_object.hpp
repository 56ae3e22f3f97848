// Which file's code is mapped at an address, and where that file's table of unwind rules is.
//
// States      not looked up, then looked up for ever; look_up_dl_find_object() goes from one to the
//             other
// Invariant   find_code_object answers correctly in both states, only more slowly in the first
#pragma once

#include <cstdint>

struct dl_find_object;  // of <dlfcn.h>

namespace heapwright::unwind {

/// A file that is mapped.
struct code_object {
  std::uintptr_t begin, end;
  std::uintptr_t base;
  const char* path;
};

using find_object_function = int(void*, struct ::dl_find_object*);

/// glibc's, since 2.35; null where it is not known.
extern constinit find_object_function* find_object [[gnu::visibility("hidden")]];

/// Finds the quick way to look, where glibc has it: since 2.35. May be called more than once, from
/// one thread at a time. dlsym may call malloc. Null in the archive, as a static program has no
/// dlsym.
[[gnu::weak]] void look_up_dl_find_object() noexcept;

/// Returns the .eh_frame_hdr of what is mapped at `pc`, or null. `object` says what that is; it
/// stays as it was if nothing is. The quick way takes no lock: neither a thread in dlopen nor a
/// fork in the middle of one can delay it. The other takes the loader's.
[[nodiscard]] const std::uint8_t* find_code_object(std::uintptr_t pc, code_object& object) noexcept;

}  // namespace heapwright::unwind
