// What a call stack needs from Windows: the frames, and where each lies in a file. Names are left to
// the reader: those of mingw are in the file, for addr2line; those of others are in a PDB beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/text.hpp>
#include <heapwright/core/windows/windows_headers.hpp>

namespace heapwright::detail {

class stack_frames {
 public:
  /// Return addresses of the calling thread, the innermost first, that of this function's own frame
  /// included: at most n. Returns how many.
  [[gnu::noinline]] static unsigned capture(std::uintptr_t* to, unsigned n) noexcept {
    return ::RtlCaptureStackBackTrace(0, n, reinterpret_cast<void**>(to), nullptr);
  }

  /// An instruction as OBJECT+OFFSET, the offset as the file says addresses; as a number, if it lies
  /// in no file.
  [[nodiscard]] static text<500> raw(std::uintptr_t pc) noexcept {
    constexpr DWORD without_a_reference =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    text<500> out;
    HMODULE module = nullptr;
    char path[longest_path];
    if (::GetModuleHandleExW(without_a_reference, reinterpret_cast<const wchar_t*>(pc), &module) == 0 ||
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
    const HANDLE file = ::CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING, 0,
                                      nullptr);
    if (file == INVALID_HANDLE_VALUE) return 0;
    unsigned char head[4096];
    DWORD length = 0;
    const bool was_read = ::ReadFile(file, head, sizeof head, &length, nullptr) != 0;
    ::CloseHandle(file);
    IMAGE_DOS_HEADER dos;
    IMAGE_NT_HEADERS headers;
    if (!was_read || length < sizeof dos) return 0;
    std::memcpy(&dos, head, sizeof dos);
    const auto at = static_cast<std::size_t>(dos.e_lfanew);
    if (at > length || length - at < sizeof headers) return 0;
    std::memcpy(&headers, head + at, sizeof headers);
    return static_cast<std::uintptr_t>(headers.OptionalHeader.ImageBase);
  }
};

}  // namespace heapwright::detail
