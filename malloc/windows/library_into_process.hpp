// How a library gets into a process that does not run yet: a thread of that process loads it.
#pragma once

#include <cwchar>

#include "windows_headers.hpp"

namespace heapwright::process {

/// 0, or what went wrong as Windows numbers it; ERROR_DLL_INIT_FAILED: the process has refused to
/// load it, or has not loaded it in half a minute.
[[nodiscard]] inline DWORD load_library_into(HANDLE process, const wchar_t* path) noexcept {
  constexpr DWORD patience_ms = 30'000;
  const std::size_t bytes = (std::wcslen(path) + 1) * sizeof(wchar_t);
  void* const there = ::VirtualAllocEx(process, nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (there == nullptr || ::WriteProcessMemory(process, there, path, bytes, nullptr) == 0) return ::GetLastError();
  // kernel32 lies at one place in all processes.
  const auto load = reinterpret_cast<LPTHREAD_START_ROUTINE>(
      reinterpret_cast<void*>(::GetProcAddress(::GetModuleHandleW(L"kernel32.dll"), "LoadLibraryW")));
  const HANDLE thread = ::CreateRemoteThread(process, nullptr, 0, load, there, 0, nullptr);
  if (thread == nullptr) return ::GetLastError();
  DWORD loaded = 0;
  if (::WaitForSingleObject(thread, patience_ms) == WAIT_OBJECT_0) {
    ::GetExitCodeThread(thread, &loaded);
    ::VirtualFreeEx(process, there, 0, MEM_RELEASE);
  }
  ::CloseHandle(thread);
  return loaded != 0 ? 0 : DWORD{ERROR_DLL_INIT_FAILED};
}

}  // namespace heapwright::process
