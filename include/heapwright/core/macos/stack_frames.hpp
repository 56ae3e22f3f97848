// What a call stack needs from macOS: the frames, and where each lies in a file. Names are left to
// the reader: `atos -o OBJECT OFFSET`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <dlfcn.h>
#include <mach-o/loader.h>

#include <heapwright/core/posix/capture_frames.hpp>
#include <heapwright/core/text.hpp>

namespace heapwright::detail {

class stack_frames {
 public:
  /// Return addresses of the calling thread, the innermost first, that of this function's own frame
  /// included: at most n. Returns how many.
  [[gnu::noinline]] static unsigned capture(std::uintptr_t* to, unsigned n) noexcept { return capture_frames(to, n); }

  /// An instruction as OBJECT+OFFSET, the offset as the file says addresses; as a number, if it
  /// lies in no file.
  [[nodiscard]] static text<500> raw(std::uintptr_t pc) noexcept {
    text<500> out;
    Dl_info object;
    if (::dladdr(reinterpret_cast<void*>(pc), &object) == 0 || object.dli_fname == nullptr) return out.add_hex(pc);
    const std::uintptr_t loaded_at = reinterpret_cast<std::uintptr_t>(object.dli_fbase);
    return out.add(object.dli_fname).add("+").add_hex(pc - loaded_at + linked_for(object.dli_fbase));
  }

  /// Calls unnamed(i) for each of `n` instructions: nothing has a name. False.
  template <class Named, class Unnamed>
  static bool name(const std::uintptr_t*, unsigned n, Named, Unnamed unnamed) noexcept {
    for (unsigned i = 0; i < n; ++i) unnamed(i);
    return false;
  }

 private:
  /// The address that the file was linked for: that of its segment __TEXT, which begins with the
  /// header.
  [[nodiscard]] static std::uintptr_t linked_for(const void* header) noexcept {
    mach_header_64 head;
    std::memcpy(&head, header, sizeof head);
    if (head.magic != MH_MAGIC_64) return 0;
    const auto* at = static_cast<const std::byte*>(header) + sizeof head;
    for (std::uint32_t i = 0; i < head.ncmds; ++i) {
      load_command command;
      std::memcpy(&command, at, sizeof command);
      segment_command_64 segment;
      if (command.cmd == LC_SEGMENT_64) {
        std::memcpy(&segment, at, sizeof segment);
        if (std::strncmp(segment.segname, SEG_TEXT, sizeof segment.segname) == 0) return segment.vmaddr;
      }
      at += command.cmdsize;
    }
    return 0;
  }
};

}  // namespace heapwright::detail
