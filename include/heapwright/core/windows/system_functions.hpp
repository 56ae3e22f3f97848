// What we call of Windows, declared as <windows.h> declares it: that header would bring its macros
// (near, far, small) into every program that uses the kit. It may be included before or after this
// one.
//
// A structure of Windows has its name here too, but not its members; what we read of it is in
// heapwright::detail, laid out as Windows does on 64-bit processors.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/language.hpp>

static_assert(sizeof(void*) == 8 && sizeof(long) == 4, "Windows of 64 bits");

struct HINSTANCE__;
struct _LUID;
struct _MEMORY_BASIC_INFORMATION;
struct _OVERLAPPED;
struct _RTL_SRWLOCK;
struct _SECURITY_ATTRIBUTES;
struct _TOKEN_PRIVILEGES;

// Headers of newer mingw-w64 declare some of these without dllimport, which changes nothing.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdll-attribute-on-redeclaration"
#endif
extern "C" {
#define HEAPWRIGHT_OF_WINDOWS(result) __declspec(dllimport) result __stdcall
HEAPWRIGHT_OF_WINDOWS(void) AcquireSRWLockExclusive(_RTL_SRWLOCK*);
HEAPWRIGHT_OF_WINDOWS(int)
AdjustTokenPrivileges(void* token, int, _TOKEN_PRIVILEGES*, unsigned long bytes, _TOKEN_PRIVILEGES*, unsigned long*);
HEAPWRIGHT_OF_WINDOWS(int) CloseHandle(void*);
HEAPWRIGHT_OF_WINDOWS(void*)
CreateFileA(const char* path, unsigned long access, unsigned long share, _SECURITY_ATTRIBUTES*, unsigned long how,
            unsigned long flags, void*);
HEAPWRIGHT_OF_WINDOWS(void*) GetCurrentProcess();
HEAPWRIGHT_OF_WINDOWS(std::size_t) GetLargePageMinimum();
HEAPWRIGHT_OF_WINDOWS(unsigned long) GetLastError();
HEAPWRIGHT_OF_WINDOWS(void*) GetProcessHeap();
HEAPWRIGHT_OF_WINDOWS(void*) HeapAlloc(void* heap, unsigned long flags, std::size_t);
HEAPWRIGHT_OF_WINDOWS(int) HeapFree(void* heap, unsigned long flags, void*);
HEAPWRIGHT_OF_WINDOWS(unsigned long) GetModuleFileNameA(HINSTANCE__*, char*, unsigned long bytes);
HEAPWRIGHT_OF_WINDOWS(int) GetModuleHandleExW(unsigned long flags, const wchar_t*, HINSTANCE__**);
HEAPWRIGHT_OF_WINDOWS(int) GetProcessWorkingSetSize(void* process, std::size_t* least, std::size_t* most);
HEAPWRIGHT_OF_WINDOWS(void*) GetStdHandle(unsigned long);
HEAPWRIGHT_OF_WINDOWS(unsigned long long) GetTickCount64();
HEAPWRIGHT_OF_WINDOWS(int) LookupPrivilegeValueW(const wchar_t* system, const wchar_t* name, _LUID*);
HEAPWRIGHT_OF_WINDOWS(int) OpenProcessToken(void* process, unsigned long access, void** token);
HEAPWRIGHT_OF_WINDOWS(int) ReadFile(void*, void*, unsigned long bytes, unsigned long* read, _OVERLAPPED*);
HEAPWRIGHT_OF_WINDOWS(void) ReleaseSRWLockExclusive(_RTL_SRWLOCK*);
HEAPWRIGHT_OF_WINDOWS(void) SetLastError(unsigned long);
HEAPWRIGHT_OF_WINDOWS(int) SetProcessWorkingSetSize(void* process, std::size_t least, std::size_t most);
HEAPWRIGHT_OF_WINDOWS(void) Sleep(unsigned long milliseconds);
HEAPWRIGHT_OF_WINDOWS(unsigned long) TlsAlloc();
HEAPWRIGHT_OF_WINDOWS(int) TlsFree(unsigned long slot);
HEAPWRIGHT_OF_WINDOWS(void*) TlsGetValue(unsigned long slot);
HEAPWRIGHT_OF_WINDOWS(int) TlsSetValue(unsigned long slot, void*);
HEAPWRIGHT_OF_WINDOWS(void*) VirtualAlloc(void*, std::size_t, unsigned long how, unsigned long access);
HEAPWRIGHT_OF_WINDOWS(int) VirtualFree(void*, std::size_t, unsigned long how);
HEAPWRIGHT_OF_WINDOWS(int) VirtualLock(void*, std::size_t);
HEAPWRIGHT_OF_WINDOWS(int) VirtualProtect(void*, std::size_t, unsigned long access, unsigned long* before);
HEAPWRIGHT_OF_WINDOWS(std::size_t) VirtualQuery(const void*, _MEMORY_BASIC_INFORMATION*, std::size_t bytes);
HEAPWRIGHT_OF_WINDOWS(int) VirtualUnlock(void*, std::size_t);
HEAPWRIGHT_OF_WINDOWS(int) WriteFile(void*, const void*, unsigned long bytes, unsigned long* written, _OVERLAPPED*);
HEAPWRIGHT_OF_WINDOWS(unsigned short)
RtlCaptureStackBackTrace(unsigned long skipped, unsigned long most, void** to, unsigned long*);
#undef HEAPWRIGHT_OF_WINDOWS
int __stdcall K32QueryWorkingSetEx(void* process, void* pages, unsigned long bytes);
unsigned char __stdcall SystemFunction036(void* to, unsigned long bytes);  // RtlGenRandom
int __stdcall WaitOnAddress(volatile void*, void* expected, std::size_t bytes, unsigned long milliseconds);
void __stdcall WakeByAddressSingle(void*);
__declspec(dllimport) std::intptr_t __cdecl _get_osfhandle(int);
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

namespace heapwright::detail {

/// MEMORY_BASIC_INFORMATION.
struct memory_region {
  void* begin;
  void* reservation;
  unsigned long first_access;
  unsigned short partition;
  std::size_t bytes;
  unsigned long state;   ///< memory_state
  unsigned long access;  ///< memory_access
  unsigned long type;

  [[nodiscard]] std::byte* end() const noexcept { return static_cast<std::byte*>(begin) + bytes; }
};
static_assert(sizeof(memory_region) == 48);

/// The region that p lies in. False: p is no address of the process.
[[nodiscard]] inline bool find_region(const void* p, memory_region& to) noexcept {
  return ::VirtualQuery(p, reinterpret_cast<_MEMORY_BASIC_INFORMATION*>(&to), sizeof to) != 0;
}

namespace memory_state {  // and how VirtualAlloc and VirtualFree change it
inline constexpr unsigned long committed = 0x1000, reserved = 0x2000, free = 0x10000;
inline constexpr unsigned long decommit = 0x4000, release = 0x8000, large_pages = 0x20000000;
}  // namespace memory_state

namespace memory_access {
inline constexpr unsigned long none = 0x01, read_write = 0x04;
}  // namespace memory_access

}  // namespace heapwright::detail
