// What a call stack needs from Windows: the frames, and where each lies in a file. Names are left
// to the reader: those of mingw are in the file, for addr2line; those of others are in a PDB beside
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/text.hpp>
#include <heapwright/core/windows/system_functions.hpp>

namespace heapwright::detail {

class stack_frames {
 public:
  /// Return addresses of the calling thread, the innermost first, that of this function's own frame
  /// included: at most n. Returns how many.
  [[gnu::noinline]] static unsigned capture(std::uintptr_t* to, unsigned n) noexcept {
    return ::RtlCaptureStackBackTrace(0, n, reinterpret_cast<void**>(to), nullptr);
  }

  /// An instruction as OBJECT+OFFSET, the offset as the file says addresses; as a number, if it
  /// lies in no file.
  [[nodiscard]] static text<500> raw(std::uintptr_t pc) noexcept {
    constexpr unsigned long of_address = 4, without_a_reference = 2;
    text<500> out;
    HINSTANCE__* module = nullptr;
    char path[longest_path];
    if (::GetModuleHandleExW(of_address | without_a_reference, reinterpret_cast<const wchar_t*>(pc), &module) == 0 ||
        ::GetModuleFileNameA(module, path, sizeof path) == 0)
      return out.add_hex(pc);
    return out.add(path).add("+").add_hex(pc - reinterpret_cast<std::uintptr_t>(module) + preferred_base(path));
  }

  /// Calls unnamed(i) for each of `n` instructions: nothing has a name. False.
  template <class Named, class Unnamed>
  static bool name(const std::uintptr_t*, unsigned n, Named, Unnamed unnamed) noexcept {
    for (unsigned i = 0; i < n; ++i) unnamed(i);
    return false;
  }

 private:
  static constexpr std::size_t longest_path = 400;

  /// The address that the file was linked for; 0: it cannot be read. What is loaded has the address
  /// that it was loaded at in its place.
  [[nodiscard]] static std::uintptr_t preferred_base(const char* path) noexcept {
    constexpr unsigned long to_read = 0x80000000, shared = 1 | 4, existing = 3;
    void* const file = ::CreateFileA(path, to_read, shared, nullptr, existing, 0, nullptr);
    if (file == reinterpret_cast<void*>(~std::uintptr_t{0})) return 0;
    unsigned char head[4096];
    unsigned long length = 0;
    const bool was_read = ::ReadFile(file, head, sizeof head, &length, nullptr) != 0;
    ::CloseHandle(file);
    // The PE format: the fourth word from the end of the DOS header is where the headers are; the
    // address lies 48 bytes behind their signature.
    constexpr std::size_t offset_of_headers = 60, of_base = 48;
    std::uint32_t headers = 0;
    std::uint64_t base = 0;
    if (!was_read || length < offset_of_headers + sizeof headers) return 0;
    std::memcpy(&headers, head + offset_of_headers, sizeof headers);
    if (headers > length || length - headers < of_base + sizeof base) return 0;
    std::memcpy(&base, head + headers + of_base, sizeof base);
    return base;
  }
};

}  // namespace heapwright::detail
